import { canFailWith } from '../../conditions.ts';
import type { FindingList } from '../../finding-list.ts';
import type { Row } from '../decisions.ts';
import type { Draft } from '../section.ts';

/** The rows without what a provider can't fail with: a late first content, if the file has no limit for it. */
export const possibleRows = (rows: readonly Row[], providers: readonly Draft[]): Row[] =>
  rows.map(({ name, cells }, index) => {
    const limit = providers[index]!.first_token_ms as number | undefined;
    return { name, cells: cells.filter(({ failing }) => canFailWith({ first_token_ms: limit ?? null }, failing.condition)) };
  });

/** Finds what is assumed of LiteLLM's streams, if the file limits them. */
export function noteStreams(findings: FindingList, providers: readonly Draft[]): void {
  if (providers.every(({ idle_ms }) => idle_ms === undefined)) return;
  const sentence =
    'stream_timeout is imported as first_token_ms and idle_ms. That LiteLLM uses it for both, and calls no other model once it has sent a part of a stream, is inferred and was not measured.';
  findings.add('inferred', 'stream_timeout', sentence, { condition: 'interrupted' });
}
