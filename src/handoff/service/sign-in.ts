import { invalid, ServiceError } from '../../kit/errors.ts';
import { errors } from '../model/errors.ts';
import type { AnsweredVia } from '../rules/answer.ts';
import type { Caller } from './authentication.ts';

/** What sign-in is used for where people answer. */
export interface SignInUse {
  /** Whether people can sign in. */
  readonly isOffered: boolean;
  /** Whether only people who have signed in answer, and whether they alone do so in the console. */
  readonly isRequired: boolean;
  readonly isRequiredInConsole: boolean;
}

/** Where nobody can sign in. */
export const noSignIn: SignInUse = { isOffered: false, isRequired: false, isRequiredInConsole: false };

/** Whether a link or a channel asks for a sign-in, as it is stored. @throws ServiceError 400 where nobody can sign in */
export function signInColumn(isWanted: boolean, { isOffered }: SignInUse): 0 | 1 {
  if (isWanted && !isOffered)
    throw invalid('sign_in', 'sign_in needs an identity provider: SERVICE_OIDC_ISSUER and SERVICE_OIDC_CLIENT_ID are not set.');
  return isWanted ? 1 : 0;
}

/** What callers see of it. */
export const shownSignIn = (sign_in: number): { sign_in?: true } => (sign_in === 1 ? { sign_in: true } : {});

/** Requires that the caller has signed in, where only such people answer. @throws ServiceError 403 */
export function requireSignIn({ kind }: Pick<Caller, 'kind'>, via: AnsweredVia, { isRequired, isRequiredInConsole }: SignInUse): void {
  if (kind === 'session' || !(isRequired || (isRequiredInConsole && via === 'console'))) return;
  throw new ServiceError(
    errors.SIGN_IN_REQUIRED,
    'Only people who have signed in answer here: sign in to the console, or use an answer link.',
  );
}
