import { errors, type JWTPayload, jwtVerify } from 'jose';
import * as client from 'openid-client';

import { type Clock, systemClock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import { type Claims, isSameIssuer } from '../rules/identity.ts';
import { boundedFetch } from './fetch.ts';
import { SigningKeys } from './keys.ts';

/** What the settings say about an identity provider. */
export interface ProviderSettings {
  readonly issuer: string;
  /** Undefined: nobody signs in, and there is no introspection. */
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** The scopes of a sign-in; undefined: the usual ones. */
  readonly scopes: string | undefined;
  /** The types of access tokens that are taken. */
  readonly tokenTypes: readonly string[];
  /** The address of the service, without a slash at its end. */
  readonly publicUrl: string;
}

/** What binds the answer of the provider to the browser that began a sign-in. */
export interface SignInChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** What the provider says about a person, and the tokens to ask it again. */
export interface SignedIn {
  readonly claims: Claims;
  readonly refreshToken: string | undefined;
  readonly idToken: string | undefined;
  /** The provider's id of its own session. */
  readonly providerSession: string | undefined;
}

/** Whose sessions a logout token ends. */
interface LoggedOut {
  readonly subject: string | undefined;
  readonly providerSession: string | undefined;
  /** The provider's id of the token (`jti`). */
  readonly tokenId: string;
}

/** The algorithms of signatures: those with a public key (RFC 9068, section 2.1; RFC 8725, section 3.2). */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];

/** How far the provider's clock may be from ours, in seconds. */
const toleranceSeconds = 60;

/** How long after a failed discovery no request tries it again, in milliseconds. */
const discoveryPauseMs = 5000;

/** The longest token that is looked at, in characters. */
const maxTokenLength = 16_384;

/** The event of a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.4). */
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

/** The provider does not answer, or not as it should. */
export function providerUnavailable(cause?: unknown): ServiceError {
  const headers = { 'Retry-After': '5' };
  const error = new ServiceError('SERVICE_UNAVAILABLE', 'The identity provider does not answer. Try again in a moment.', { headers });
  if (cause !== undefined) error.cause = cause;
  return error;
}

/** An identity provider that speaks OpenID Connect. */
export class Provider {
  readonly #settings: ProviderSettings;
  readonly #clock: Clock;
  readonly #keys: SigningKeys;
  #metadata: client.ServerMetadata | undefined;
  #discovering: Promise<void> | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: ProviderSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#keys = new SigningKeys(async () => {
      const { jwks_uri } = await this.#known();
      if (jwks_uri === undefined) throw new Error('The identity provider publishes no keys.');
      return jwks_uri;
    }, clock);
  }

  /** The provider's own spelling of its address, once it has been found. */
  get issuer(): string {
    return this.#metadata?.issuer ?? this.#settings.issuer;
  }

  /** Reads what the provider says about itself, unless that is known. @throws the failure */
  discover(): Promise<void> {
    if (this.#metadata !== undefined) return Promise.resolve();
    this.#discovering ??= this.#load().finally(() => {
      this.#discovering = undefined;
    });
    return this.#discovering;
  }

  async #load(): Promise<void> {
    this.#triedAt = this.#clock().getTime();
    const { issuer, clientId = 'none' } = this.#settings;
    const url = new URL(issuer);
    const execute = url.protocol === 'http:' ? [client.allowInsecureRequests] : [];
    const found = await client.discovery(url, clientId, undefined, undefined, { execute, [client.customFetch]: boundedFetch as never });
    this.#metadata = found.serverMetadata();
  }

  async #known(): Promise<client.ServerMetadata> {
    if (this.#metadata === undefined) {
      const isRecent = this.#clock().getTime() - this.#triedAt < discoveryPauseMs;
      if (isRecent && this.#discovering === undefined) throw providerUnavailable();
      await this.discover().catch((error: unknown) => {
        throw providerUnavailable(error);
      });
    }
    return this.#metadata!;
  }

  /** The client as the library takes it, with its clock set to ours. */
  async #client(): Promise<client.Configuration> {
    const metadata = await this.#known();
    const { clientId, clientSecret } = this.#settings;
    if (clientId === undefined) throw new ServiceError('NOT_FOUND', 'Nobody signs in here: SERVICE_OIDC_CLIENT_ID is not set.');
    const clockSkew = Math.round((this.#clock().getTime() - systemClock().getTime()) / 1000);
    const times = { [client.clockSkew]: clockSkew, [client.clockTolerance]: toleranceSeconds };
    const authentication =
      clientSecret === undefined
        ? client.None()
        : metadata.token_endpoint_auth_methods_supported?.includes('client_secret_post') &&
            !metadata.token_endpoint_auth_methods_supported.includes('client_secret_basic')
          ? client.ClientSecretPost(clientSecret)
          : client.ClientSecretBasic(clientSecret);
    const configuration = new client.Configuration(metadata, clientId, times, authentication);
    configuration[client.customFetch] = boundedFetch as never;
    if (metadata.issuer.startsWith('http:')) client.allowInsecureRequests(configuration);
    return configuration;
  }

  get #redirect(): string {
    return `${this.#settings.publicUrl}/sign-in/callback`;
  }

  /** The address at which a sign-in begins, and what its answer is checked by. @throws ServiceError 503 */
  async begin(prompt?: 'login'): Promise<{ url: URL; checks: SignInChecks }> {
    const configuration = await this.#client();
    const checks = { state: client.randomState(), nonce: client.randomNonce(), verifier: client.randomPKCECodeVerifier() };
    const offered = configuration.serverMetadata().scopes_supported ?? [];
    const usual = ['openid', 'profile', 'email', ...(offered.includes('offline_access') ? ['offline_access'] : [])].join(' ');
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirect,
      scope: this.#settings.scopes ?? usual,
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
      code_challenge_method: 'S256',
      ...(prompt === undefined ? {} : { prompt }),
    });
    return { url, checks };
  }

  /** Ends a sign-in with the parameters that the provider sent to the redirect. @throws ServiceError 400, 503 */
  async complete(parameters: URLSearchParams, { state, nonce, verifier }: SignInChecks): Promise<SignedIn> {
    const configuration = await this.#client();
    const url = new URL(`${this.#redirect}?${parameters}`);
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
    return refusing(async () => {
      const tokens = await client.authorizationCodeGrant(configuration, url, checks);
      return this.#signedIn(configuration, tokens, tokens.claims()!.sub);
    });
  }

  /** What the provider says about a person now; undefined: it no longer lets the person in. @throws ServiceError 503 */
  async refresh(refreshToken: string, subject: string): Promise<SignedIn | undefined> {
    const configuration = await this.#client();
    try {
      const tokens = await client.refreshTokenGrant(configuration, refreshToken);
      const signedIn = await this.#signedIn(configuration, tokens, subject);
      return signedIn.claims.sub === subject ? { ...signedIn, refreshToken: signedIn.refreshToken ?? refreshToken } : undefined;
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error instanceof ServiceError ? error : providerUnavailable(error);
    }
  }

  async #signedIn(
    configuration: client.Configuration,
    tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
    subject: string,
  ): Promise<SignedIn> {
    const inToken: Claims = tokens.claims() ?? {};
    // Many providers put the mail address and the groups only here.
    const asked =
      configuration.serverMetadata().userinfo_endpoint === undefined
        ? {}
        : await client.fetchUserInfo(configuration, tokens.access_token, subject);
    return {
      claims: { sub: subject, ...asked, ...inToken },
      refreshToken: tokens.refresh_token,
      idToken: tokens.id_token,
      providerSession: typeof inToken.sid === 'string' ? inToken.sid : undefined,
    };
  }

  /** Where the browser goes so that the provider ends its own session; undefined: the provider has no such address. */
  async endSession(idToken: string | undefined): Promise<string | undefined> {
    if (this.#metadata?.end_session_endpoint === undefined) return undefined;
    return client.buildEndSessionUrl(await this.#client(), {
      post_logout_redirect_uri: `${this.#settings.publicUrl}/signed-out`,
      ...(idToken === undefined ? {} : { id_token_hint: idToken }),
    }).href;
  }

  /**
   * The claims of an access token; undefined: it is no token that this provider signed.
   * @throws ServiceError 401 for one that is signed, but expired, for another audience or of another type; 503
   */
  async accessToken(token: string, audiences: readonly string[]): Promise<Claims | undefined> {
    if (token.length > maxTokenLength) return undefined;
    const verified = await this.#verify(token);
    if (verified === undefined) return undefined;
    const { payload, type } = verified;
    const { tokenTypes, clientId } = this.#settings;
    const isTaken = tokenTypes.some((taken) => taken.toLowerCase() === type || (taken === 'JWT' && type === undefined));
    if (!isTaken) throw refusedToken(`The token is of the type ${JSON.stringify(type ?? 'none')}, not ${tokenTypes.join(' or ')}.`);
    const isIdToken = ['nonce', 'at_hash', 'c_hash'].some((claim) => payload[claim] !== undefined);
    const named = [payload.aud ?? []].flat();
    if (isIdToken || (clientId !== undefined && named.includes(clientId)))
      throw refusedToken('The token is an ID token, which is for signing in. Send an access token.');
    requireAudience(payload, audiences);
    return payload;
  }

  /** The claims of a token by introspection (RFC 7662); undefined: it is not active. @throws ServiceError 401, 503 */
  async introspected(token: string): Promise<Claims | undefined> {
    let found: client.IntrospectionResponse;
    try {
      found = await client.tokenIntrospection(await this.#client(), token);
    } catch (error) {
      throw error instanceof ServiceError ? error : providerUnavailable(error);
    }
    if (!found.active) return undefined;
    if (found.iss !== undefined && !isSameIssuer(found.iss, this.issuer)) throw refusedToken('The token is of another issuer.');
    return found as Claims;
  }

  /** Whether the provider tells what an opaque token stands for. */
  async introspects(): Promise<boolean> {
    return this.#settings.clientId !== undefined && (await this.#known()).introspection_endpoint !== undefined;
  }

  /** Whose sessions a logout token ends; undefined: it is none (OpenID Connect Back-Channel Logout 1.0, section 2.6). @throws ServiceError 503 */
  async loggedOut(token: string): Promise<LoggedOut | undefined> {
    const { clientId } = this.#settings;
    if (clientId === undefined || token.length > maxTokenLength) return undefined;
    let payload: JWTPayload | undefined;
    try {
      payload = (await this.#verify(token))?.payload;
    } catch (error) {
      if (error instanceof ServiceError && error.status === 401) return undefined;
      throw error;
    }
    if (payload === undefined || ![payload.aud ?? []].flat().includes(clientId)) return undefined;
    const events = payload.events as Record<string, unknown> | undefined;
    if (typeof events !== 'object' || events === null || typeof events[logoutEvent] !== 'object') return undefined;
    if (payload.nonce !== undefined || typeof payload.jti !== 'string' || typeof payload.iat !== 'number') return undefined;
    const { sub: subject, sid, jti: tokenId } = payload;
    const providerSession = typeof sid === 'string' ? sid : undefined;
    return subject === undefined && providerSession === undefined ? undefined : { subject, providerSession, tokenId };
  }

  async #verify(token: string): Promise<{ payload: JWTPayload; type: string | undefined } | undefined> {
    const { issuer } = await this.#known();
    const options = { issuer, algorithms, clockTolerance: toleranceSeconds, currentDate: this.#clock(), requiredClaims: ['exp'] };
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys.get, options);
      const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
      return { payload, type };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw refusedToken('The token has expired.');
      // Claims are looked at once the signature has been verified.
      if (error instanceof errors.JWTClaimValidationFailed && error.claim !== 'iss')
        throw refusedToken(error.claim === 'nbf' ? 'The token is not valid yet.' : `The claim ${error.claim} of the token is not valid.`);
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) return undefined;
      if (error instanceof TypeError && error.message.startsWith('Invalid')) return undefined;
      throw error instanceof ServiceError ? error : providerUnavailable(error);
    }
  }
}

/** 401 for a token that the provider signed, and that is not taken here. It does not count as a wrong key. */
export class RefusedToken extends ServiceError {}

const refusedToken = (detail: string) => new RefusedToken('UNAUTHORIZED', detail);

/** @throws RefusedToken when a token is for others */
export function requireAudience({ aud }: Claims, audiences: readonly string[]): void {
  const bare = (one: unknown) => String(one).replace(/\/+$/, '');
  const named = [aud ?? []].flat().map(bare);
  if (!audiences.some((one) => named.includes(bare(one))))
    throw refusedToken(`The token is for another audience, not ${audiences.join(' or ')}.`);
}

/** Whether the provider answered that it does not take what it was sent. */
const isRefusal = (error: unknown): boolean =>
  error instanceof client.ResponseBodyError && error.status >= 400 && error.status < 500 && error.error !== 'temporarily_unavailable';

/** Runs a step of a sign-in; a refusal of the provider, or an answer that does not belong to the browser, is 400. */
async function refusing<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (isUnanswered(error)) throw providerUnavailable(error);
    if (error instanceof client.AuthorizationResponseError)
      throw new ServiceError('VALIDATION_ERROR', `The identity provider did not let you in: ${error.error_description ?? error.error}.`);
    throw new ServiceError('VALIDATION_ERROR', 'The answer of the identity provider does not belong to this sign-in, or was used before.');
  }
}

/** Whether the provider did not answer, or failed. `fetch` reports a failed connection as a TypeError with a cause. */
function isUnanswered(error: unknown): boolean {
  if (error instanceof client.ResponseBodyError) return error.status >= 500;
  if (error instanceof client.ClientError) return error.cause instanceof Response && error.cause.status >= 500;
  return error instanceof DOMException || (error instanceof TypeError && error.cause !== undefined);
}
