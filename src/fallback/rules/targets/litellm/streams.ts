import type { ChainDefinition, Condition } from '../../../model/chain.ts';
import { canFailWith } from '../../conditions.ts';
import type { FindingList, Reason } from '../../finding-list.ts';
import type { Row } from '../decisions.ts';
import type { Draft } from '../section.ts';
import type { Reached } from './reached.ts';

/** The rows without what a provider can't fail with: a late first content, if the file has no limit for it. */
export const possibleRows = (rows: readonly Row[], providers: readonly Draft[]): Row[] =>
  rows.map(({ name, cells }, index) => {
    const limit = providers[index]!.first_token_ms as number | undefined;
    return { name, cells: cells.filter(({ failing }) => canFailWith({ first_token_ms: limit ?? null }, failing.condition)) };
  });

/** What is known of a model, as far as streams matter. */
interface Streaming {
  readonly isAnthropic: boolean;
  /** Whether it is retried after an answer that can't be used. */
  readonly isRetried: boolean;
  /** Whether a refusal is followed by another call. */
  readonly isTriedAgain: boolean;
  /** Whether it has a limit for the first content. */
  readonly isLimited: boolean;
}

/** What LiteLLM does with the streams of a model otherwise than a chain, as measured with versions 1.106.2 and 1.110.2 at each of its APIs. */
function differencesOf({ isAnthropic, isRetried, isTriedAgain, isLimited }: Streaming, provider: string) {
  const ofAnthropic = (sentence: string) => (isAnthropic ? sentence : '');
  const retried = ofAnthropic(" (1.110.2 retries Anthropic's)");
  const sentences: readonly (readonly [condition: Condition, isSo: boolean, sentence: string])[] = [
    [
      'invalid_response',
      true,
      `If a stream has an error before its content (invalid_response), LiteLLM goes to the fallbacks${isRetried ? ` without a retry${retried}` : ''}; called by messages, and 1.110.2 by responses, it retries an error; called by messages or responses, and of some kinds of providers also by chat, it leaves a malformed part out and goes on.${ofAnthropic(" With 1.106.2, a malformed part of Anthropic's ends the answer as an empty one.")}`,
    ],
    [
      'interrupted',
      true,
      `If a stream ends without its final event (interrupted), LiteLLM 1.106.2 ends its answer as a whole one${ofAnthropic(", as it does behind a malformed part of Anthropic's")}; 1.110.2 ends it with an error. Called by messages or responses, and of some kinds also by chat, both leave a malformed part out; called by responses, both call the fallbacks after an error event and send their whole answer behind what was sent.`,
    ],
    [
      'content_filter',
      isTriedAgain,
      'LiteLLM passes a streamed refusal (content_filter with status 200) on to the caller; its retries and content_policy_fallbacks are only for whole answers.',
    ],
    [
      'first_token_timeout',
      isLimited,
      `If the first content is late (first_token_timeout), LiteLLM goes to the fallbacks without a retry${retried}; called by messages, it retries, and called by responses, it ends with an error.`,
    ],
  ];
  return sentences.flatMap(([condition, isSo, detail]) => {
    if (!isSo) return [];
    const status_codes = condition === 'content_filter' ? { status_codes: [200] } : {};
    return [{ detail, loss: true, provider, condition, ...status_codes, stream: true as const }];
  });
}

/** What LiteLLM does with the streams of an exported chain otherwise than the chain. */
export const streamReasons = ({ providers }: ChainDefinition): Reason[] =>
  providers.flatMap(({ name, provider, first_token_ms }) =>
    differencesOf({ isAnthropic: provider === 'anthropic', isRetried: true, isTriedAgain: true, isLimited: first_token_ms !== null }, name),
  );

/** Finds what LiteLLM does otherwise with streamed answers. */
export function noteStreams<D extends { readonly kind: string; readonly provider: Draft & { readonly name: string } }>(
  findings: FindingList,
  chain: readonly Reached<D>[],
): void {
  for (const { deployment, outcomes } of chain) {
    const { kind, provider } = deployment;
    const some = (condition: Condition, is: (outcome: Reached<D>['outcomes'][number]) => boolean) =>
      outcomes.some((outcome) => outcome.failing.condition === condition && is(outcome));
    const streaming = {
      isAnthropic: kind === 'anthropic',
      isRetried: some('invalid_response', ({ retries }) => retries > 0),
      isTriedAgain: some('content_filter', ({ retries, next }) => retries > 0 || next.length > 0),
      isLimited: provider.first_token_ms !== undefined,
    };
    for (const { detail, ...about } of differencesOf(streaming, provider.name)) findings.add('stream', null, detail, about);
  }
}
