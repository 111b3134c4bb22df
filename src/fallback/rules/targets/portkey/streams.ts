import type { ChainDefinition } from '../../../model/chain.ts';
import { ofWaits } from '../../../model/finding.ts';
import type { FindingList, Reason } from '../../finding-list.ts';

/** What Portkey does with an error behind the content of a stream, by the kind of its provider, as measured with version 1.15.2. */
const sentenceOf = (name: string): string =>
  `If a stream of ${name} has an error event behind content (interrupted), Portkey ends its answer as a whole one, with the name of the error as its finish reason.`;

/** What Portkey does when a stream is silent, as measured with version 1.15.2. A whole answer that comes slowly is no failure of fake providers. */
const untimed =
  "Portkey's request_timeout limits the time until the status of an answer; for a stream, or the rest of a whole answer, that is silent behind it Portkey waits without an end, and the chain ends it after that time.";

/** Kinds whose streams Portkey translates. */
const translated: ReadonlySet<string | null> = new Set(['anthropic']);

/** What Portkey does with the streams of a target otherwise than a chain. */
const differencesOf = (provider: string, kind: string | null, isTimed: boolean): Reason[] => {
  const about = { loss: true, provider, stream: true } as const;
  return [
    ...(translated.has(kind) ? [{ ...about, detail: sentenceOf(provider), condition: 'interrupted' as const }] : []),
    ...(isTimed ? [{ ...about, kind: ofWaits, detail: untimed, condition: 'timeout' as const }] : []),
  ];
};

/** What Portkey does with the streams of an exported chain otherwise than the chain. */
export const streamReasons = ({ providers }: ChainDefinition): Reason[] =>
  providers.flatMap(({ name, provider }) => differencesOf(name, provider, true));

/** A target of a file: its name and kind, and whether it has a request_timeout. */
interface StreamedTarget {
  readonly name: string;
  readonly kind: string | null;
  readonly isTimed: boolean;
}

/** Finds what Portkey does otherwise with streamed answers. */
export function noteStreams(findings: FindingList, targets: readonly StreamedTarget[]): void {
  for (const { name, kind, isTimed } of targets)
    for (const { kind: found = 'stream', detail, ...about } of differencesOf(name, kind, isTimed)) findings.add(found, null, detail, about);
}
