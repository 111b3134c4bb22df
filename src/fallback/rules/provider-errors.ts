import type { Condition } from '../model/chain.ts';
import { otherErrors } from './other-error-bodies.ts';
import { anthropicErrors, openaiErrors, type ProviderError } from './provider-error-bodies.ts';
import { requestErrors } from './request-error-bodies.ts';

/**
 * The error bodies of the commonest kinds of providers, by which failures are recognized and which fake providers send. Of Bedrock,
 * Ollama and Perplexity we know no body that is published or reported: theirs are taken for OpenAI's.
 */
export const providerErrors: readonly ProviderError[] = [...openaiErrors, ...anthropicErrors, ...otherErrors, ...requestErrors];

/** What a kind is known to send for a condition, and for a status if it is given: the error that it sends most often; undefined without any. */
export const errorOf = (kind: string, condition: Condition, status?: number): ProviderError | undefined =>
  providerErrors.find((one) => one.condition === condition && one.kinds.includes(kind) && (status === undefined || one.status === status));

/** The statuses that a kind of providers is known to send for a condition; if none is known, the statuses that the kind `otherwise` sends. */
export function statusesSentBy(kind: string, condition: Condition, otherwise: string): readonly number[] {
  const sent = (name: string) =>
    providerErrors.flatMap((one) => (one.condition === condition && one.kinds.includes(name) ? [one.status] : []));
  const own = sent(kind);
  return [...new Set(own.length > 0 ? own : sent(otherwise))];
}

/** The statuses below 500 that providers send for a condition. A status from 500 on always means a failure of the server, whatever the error says. */
export const statusesSeen = (condition: Condition): readonly number[] => [
  ...new Set(providerErrors.filter((one) => one.condition === condition && one.status < 500).map(({ status }) => status)),
];

/** The statuses that a condition shares with other conditions, and the words by which its errors are told apart; null if the status always decides. */
export function wordsSeen(condition: Condition): { readonly statuses: readonly number[]; readonly says: RegExp } | null {
  const worded = providerErrors.filter((one) => one.condition === condition && one.says !== undefined);
  if (worded.length === 0) return null;
  const says = new RegExp([...new Set(worded.map((one) => one.says))].join('|'), 'i');
  return { statuses: [...new Set(worded.map(({ status }) => status))], says };
}
