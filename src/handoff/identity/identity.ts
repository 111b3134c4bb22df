import type { Awaitable } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { NewId, RandomSource } from '../../kit/id.ts';
import type { ClaimRules } from '../rules/identity.ts';
import type { Caller } from '../service/authentication.ts';
import type { Store } from '../store/store.ts';
import { Provider, type ProviderSettings, type SignInChecks } from './provider.ts';
import { Seal, sealKeyLength } from './seal.ts';
import { Sessions, type SessionTimes } from './sessions.ts';
import { Tokens } from './tokens.ts';

interface IdentityDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly random: RandomSource;
  readonly provider: ProviderSettings;
  readonly rules: ClaimRules;
  readonly audiences: readonly string[];
  readonly times: SessionTimes;
  /** The key that encrypts what sessions keep, in base64; undefined: the database has it. */
  readonly sessionKey: string | undefined;
  readonly failed: (error: unknown) => void;
}

/** How long a sign-in may take at the provider, in milliseconds. */
const signInMs = 10 * 60_000;

/** What the browser keeps while its person is at the provider. */
interface Begun extends SignInChecks {
  readonly returnTo: string;
  readonly until: number;
}

/** Sign-in, sessions and tokens, by an identity provider. */
export type Identity = Awaited<ReturnType<typeof createIdentity>>;

/** Wires sign-in, sessions and tokens. */
export async function createIdentity(parts: IdentityDependencies) {
  const { store, clock, random, rules, provider: settings } = parts;
  const fresh = Buffer.alloc(sealKeyLength);
  random(fresh);
  const key = parts.sessionKey ?? (await store.sessions.secret('session key', fresh.toString('base64')));
  const seal = new Seal(Buffer.from(key, 'base64'), random);
  const provider = new Provider(settings, clock);
  const { publicUrl } = settings;
  const sessions = new Sessions({ ...parts, provider, seal });
  const tokens = new Tokens({ ...parts, provider, publicUrl, audiences: parts.audiences });

  return {
    provider,
    sessions,
    tokens,
    rules,
    publicUrl,
    /** The provider's address in its own spelling. */
    issuer: () => provider.issuer,
    /** Whether people can sign in; else only tokens are taken. */
    signsIn: settings.clientId !== undefined,
    /** What people call the provider. */
    providerName: new URL(settings.issuer).host,

    /** Begins a sign-in: where the browser goes, and what it keeps meanwhile, under the name. @throws ServiceError 503 */
    async begin(returnTo: string, prompt?: 'login'): Promise<{ url: string; name: string; kept: string }> {
      const { url, checks } = await provider.begin(prompt);
      const begun: Begun = { ...checks, returnTo, until: clock().getTime() + signInMs };
      return { url: url.href, name: checks.state.slice(0, 12), kept: seal.close(begun, 'sign-in') };
    },

    /** The name of what the browser keeps of a sign-in, from what the provider sends back. */
    nameOf: (parameters: URLSearchParams): string => (parameters.get('state') ?? '').slice(0, 12),

    /** Ends a sign-in with a session; undefined: the browser did not begin it, or too long ago. @throws ServiceError with a sentence for the person */
    async complete(parameters: URLSearchParams, kept: string | undefined) {
      const begun = kept === undefined ? undefined : seal.open<Begun>(kept, 'sign-in');
      if (begun === undefined || begun.until <= clock().getTime() || begun.state !== parameters.get('state')) return undefined;
      const session = await sessions.begin(await provider.complete(parameters, begun));
      return { ...session, returnTo: begun.returnTo };
    },

    /** Whether the session or the token of a caller is still valid. */
    isValid: (caller: Caller): Awaitable<boolean> => (caller.kind === 'session' ? sessions.isValid(caller) : tokens.isValid(caller)),
  };
}
