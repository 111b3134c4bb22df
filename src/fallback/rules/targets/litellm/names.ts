import type { Condition } from '../../../model/chain.ts';
import { litellmKinds } from '../../kind-lists.ts';
import type { KindNames } from '../kind-names.ts';

/** LiteLLM's names of kinds of providers. */
export const kindNames: KindNames = {
  known: litellmKinds,
  aliases: { together: 'together_ai', fireworks: 'fireworks_ai', nvidia: 'nvidia_nim' },
};

/** The conditions that LiteLLM's retry policy distinguishes, and its settings for each, in the order of their rules in a chain. */
export const retryNames: readonly (readonly [Condition, readonly string[]])[] = [
  ['rate_limit', ['RateLimitErrorRetries']],
  ['timeout', ['TimeoutErrorRetries']],
  ['auth_error', ['AuthenticationErrorRetries']],
  ['invalid_request', ['BadRequestErrorRetries', 'NotFoundErrorRetries']],
  ['content_filter', ['ContentPolicyViolationErrorRetries']],
  ['server_error', ['InternalServerErrorRetries', 'ServiceUnavailableErrorRetries']],
];

/** The settings of a retry policy. */
export const policyNames: readonly string[] = [...retryNames.flatMap(([, names]) => names), 'DefaultRetries'];
