import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

import type { TestAnswer, TestClock, TestService } from './service.ts';

interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

/** A token to sign: its claims beside the usual ones, and its header. */
export interface TokenRequest {
  readonly claims?: JWTPayload;
  readonly header?: Record<string, unknown>;
  /** The key to sign with; by default the current one. */
  readonly key?: SigningKey;
}

/** An issuer of tokens for tests: it has discovery, keys and introspection, and signs what a test wants. */
export interface TestIssuer {
  readonly issuer: string;
  /** How many requests each path got. */
  readonly requests: Map<string, number>;
  /** Signs an access token for the API of `audience`. */
  token(audience: string, request?: TokenRequest): Promise<string>;
  /** Signs any claims. */
  sign(claims: JWTPayload, header?: Record<string, unknown>, key?: SigningKey): Promise<string>;
  /** Makes another signing key; the old one is no longer published. */
  rotate(): Promise<SigningKey>;
  readonly key: () => SigningKey;
  /** The person who signs in at the issuer, by the refresh tokens that it gave out; a person that is removed signs in no more. */
  readonly people: Map<string, JWTPayload>;
  /** What the issuer says about itself beside the usual, or instead of it; undefined: it does not say it. */
  metadata: Record<string, unknown>;
  /** Whether a sign-in gets a refresh token. */
  refreshes: boolean;
  /** Lets a person in: what the issuer adds to the redirect of a browser that was sent to the address. */
  authorize(address: string, claims: JWTPayload): URLSearchParams;
  /** What introspection says about tokens, by the token. */
  readonly opaque: Map<string, Record<string, unknown>>;
  /** Whether the issuer answers; `slow`: it takes requests and never answers. */
  state: 'up' | 'down' | 'slow';
  /** What `/token` waits for before it answers. */
  held: Promise<void> | undefined;
}

let made = 0;

async function newKey(): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  made += 1;
  return { kid: `key-${made}`, privateKey, publicKey };
}

/** Starts an issuer on loopback that ends with the test. */
export async function startIssuer(t: Pick<TestContext, 'after'>, clock: TestClock): Promise<TestIssuer> {
  let key = await newKey();
  const requests = new Map<string, number>();
  const opaque = new Map<string, Record<string, unknown>>();
  const jwks = async () => ({ keys: [{ ...(await exportJWK(key.publicKey)), kid: key.kid, alg: 'RS256', use: 'sig' }] });
  const read = async (request: IncomingMessage) => {
    let text = '';
    for await (const part of request) text += part;
    return new URLSearchParams(text);
  };
  const send = (response: ServerResponse, body: unknown) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const codes = new Map<string, { claims: JWTPayload; nonce: string; challenge: string }>();
  const people = new Map<string, JWTPayload>();
  const grant = async (response: ServerResponse, body: URLSearchParams) => {
    const code = codes.get(body.get('code') ?? '');
    codes.delete(body.get('code') ?? '');
    const isProved = code !== undefined && hash('sha256', body.get('code_verifier') ?? '', 'base64url') === code.challenge;
    const claims = isProved ? code.claims : people.get(body.get('refresh_token') ?? '');
    if (claims === undefined) {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
      return;
    }
    people.delete(body.get('refresh_token') ?? '');
    made += 1;
    const refresh_token = `refresh-${made}`;
    if (self.refreshes) people.set(refresh_token, claims);
    const now = Math.floor(clock.read().getTime() / 1000);
    const usual = { iss: self.issuer, aud: 'baton', iat: now, exp: now + 300 };
    const id_token = await self.sign({ ...usual, ...(isProved ? { nonce: code.nonce } : {}), ...claims }, { typ: 'JWT' });
    send(response, {
      access_token: `access-${made}`,
      token_type: 'Bearer',
      expires_in: 300,
      id_token,
      ...(self.refreshes ? { refresh_token } : {}),
    });
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url!.split('?')[0]!;
    requests.set(path, (requests.get(path) ?? 0) + 1);
    if (self.state === 'down') return void request.socket.destroy();
    if (self.state === 'slow') return;
    if (path === '/.well-known/openid-configuration')
      return send(response, {
        issuer: self.issuer,
        authorization_endpoint: `${self.issuer}/authorize`,
        token_endpoint: `${self.issuer}/token`,
        jwks_uri: `${self.issuer}/jwks`,
        introspection_endpoint: `${self.issuer}/introspect`,
        end_session_endpoint: `${self.issuer}/end`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...self.metadata,
      });
    if (path === '/token') {
      await self.held;
      return grant(response, await read(request));
    }
    if (path === '/jwks') return send(response, await jwks());
    if (path === '/introspect') return send(response, opaque.get((await read(request)).get('token') ?? '') ?? { active: false });
    response.writeHead(404).end();
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const self: TestIssuer = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    opaque,
    state: 'up',
    held: undefined,
    people,
    metadata: {},
    refreshes: true,
    authorize(address, claims) {
      const { searchParams: sent } = new URL(address);
      made += 1;
      const code = `code-${made}`;
      codes.set(code, { claims, nonce: sent.get('nonce')!, challenge: sent.get('code_challenge')! });
      return new URLSearchParams({ code, state: sent.get('state')!, iss: self.issuer });
    },
    key: () => key,
    async rotate() {
      const old = key;
      key = await newKey();
      return old;
    },
    sign: (claims, header = {}, by = key) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: by.kid, typ: 'at+jwt', ...header }).sign(by.privateKey),
    token(audience, { claims = {}, header = {}, key: by } = {}) {
      const now = Math.floor(clock.read().getTime() / 1000);
      const usual = {
        iss: self.issuer,
        aud: audience,
        sub: 'subject-1',
        client_id: 'connector',
        iat: now,
        exp: now + 300,
        jti: String(made),
      };
      return self.sign({ ...usual, ...claims }, header, by);
    },
  };
  return self;
}

/** The settings of a service with this issuer, at which people sign in. */
export const signInSettings = ({ issuer }: TestIssuer) => ({
  SERVICE_OIDC_ISSUER: issuer,
  SERVICE_OIDC_CLIENT_ID: 'baton',
  SERVICE_OIDC_CLIENT_SECRET: 'a-secret',
  SERVICE_OIDC_GROUPS_CLAIM: 'groups',
  SERVICE_PUBLIC_URL: publicUrl,
  SERVICE_OIDC_RIGHTS: '{"*": ["read", "respond"], "idp:ops": ["read", "work", "respond", "manage"], "idp:admins": ["admin"]}',
});

/** The public address of a service in tests of sign-in. */
export const publicUrl = 'http://127.0.0.1:8080';

/** The cookies that an answer sets, as a browser sends them. */
export const cookiesOf = ({ headers }: TestAnswer): string =>
  [headers['set-cookie'] ?? []]
    .flat()
    .filter((cookie) => !/; Max-Age=0;/.test(String(cookie)))
    .map((cookie) => String(cookie).split(';')[0]!)
    .join('; ');

/** The claims of a person. */
export const dana = { sub: 'dana', email: 'dana@example.com', email_verified: true, groups: ['ops'], sid: 'session-of-dana' };

/** Signs a person in, in a browser with these further cookies; returns the answer to the redirect back. */
export async function signIn(
  service: Pick<TestService, 'call'>,
  issuer: TestIssuer,
  claims: JWTPayload = dana,
  returnTo = '/console',
  cookies: readonly string[] = [],
): Promise<TestAnswer> {
  const begun = await service.call('GET', `//sign-in?return_to=${encodeURIComponent(returnTo)}`, { key: null });
  if (begun.status !== 302) return begun;
  const sent = issuer.authorize(String(begun.headers.location), claims);
  return service.call('GET', `//sign-in/callback?${sent}`, { key: null, headers: { cookie: [...cookies, cookiesOf(begun)].join('; ') } });
}

/** Calls the API as a page of the service does for a person who signed in. */
export const asPerson =
  (service: Pick<TestService, 'call'>, cookie: string) =>
  (
    method: string,
    path: string,
    { headers, ...options }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<TestAnswer> => {
    const own = method === 'GET' ? {} : { origin: publicUrl, 'x-requested-with': 'baton' };
    return service.call(method, path, { ...options, key: null, headers: { cookie, ...own, ...headers } });
  };
