import type { ChainDefinition } from '../../../model/chain.ts';
import type { FindingList, Reason } from '../../finding-list.ts';

/** What Portkey does with an error behind the content of a stream, by the kind of its provider, as measured with version 1.15.2. */
const sentenceOf = (name: string): string =>
  `If a stream of ${name} has an error event behind content (interrupted), Portkey ends its answer as a whole one, with the name of the error as its finish reason.`;

/** Kinds whose streams Portkey translates. */
const translated: ReadonlySet<string | null> = new Set(['anthropic']);

/** What Portkey does with the streams of an exported chain otherwise than the chain. */
export const streamReasons = ({ providers }: ChainDefinition): Reason[] =>
  providers
    .filter(({ provider }) => translated.has(provider))
    .map(({ name }) => ({ detail: sentenceOf(name), loss: true, provider: name, condition: 'interrupted', stream: true }));

/** Finds what Portkey does otherwise with streamed answers. */
export function noteStreams(findings: FindingList, models: readonly { readonly name: string; readonly kind: string | null }[]): void {
  for (const { name, kind } of models)
    if (translated.has(kind))
      findings.add('stream', null, sentenceOf(name), { provider: name, condition: 'interrupted', loss: true, stream: true });
}
