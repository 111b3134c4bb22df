import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

/** A person whom the provider knows. */
export interface ProviderPerson {
  readonly email: string;
  readonly name: string;
  readonly groups: readonly string[];
}

/** A running identity provider. Its people may be changed while it runs. */
export interface RunningProvider {
  readonly issuer: string;
  /** By the provider's id of each. */
  readonly people: Map<string, ProviderPerson>;
  /** Stops it, and starts it again at the same address with other keys: sessions and grants are gone. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** The client of the service for sign-in. */
export const clientId = 'baton';
export const clientSecret = 'a-secret-for-a-provider-on-loopback';

interface ProviderOptions {
  readonly people: ReadonlyMap<string, ProviderPerson>;
  /** The address of the service, without a slash at its end. */
  readonly service: string;
}

/** Access tokens are for the API or for `/mcp`, with the scopes of the service. */
const resourceScopes = 'baton:read baton:work baton:respond baton:manage';
const tokenSeconds = 300;

const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** The page on which a person says who it is: there are no passwords. */
const chooser = (uid: string, people: ReadonlyMap<string, ProviderPerson>) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Who are you?</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui;max-width:24rem;margin:15vh auto;padding:0 1rem}button{display:block;width:100%;margin:.5rem 0;padding:.75rem;font:inherit}</style></head>
<body><main><h1>Who are you?</h1><form method="post" action="/interaction/${uid}">${[...people]
  .map(
    ([id, { name, groups }]) =>
      `<button name="person" value="${id}">${escapeHtml(name)} (${escapeHtml(groups.join(', ') || 'no group')})</button>`,
  )
  .join('')}</form></main></body></html>`;

async function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const part of request) text += part;
  return new URLSearchParams(text);
}

/** What `oidc-provider` is told, with a new signing key. */
async function configurationOf({ people, service }: { people: Map<string, ProviderPerson>; service: string }) {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const claimsOf = (id: string) => {
    const { email, name, groups } = people.get(id)!;
    return { sub: id, email, email_verified: true, name, groups: [...groups] };
  };
  return {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: crypto.randomUUID() }] },
    cookies: { keys: [crypto.randomUUID()] },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${service}/sign-in/callback`],
        post_logout_redirect_uris: [`${service}/signed-out`],
        backchannel_logout_uri: `${service}/sign-in/back-channel-logout`,
        backchannel_logout_session_required: true,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    scopes: ['openid', 'offline_access', 'email', 'profile', ...resourceScopes.split(' ')],
    findAccount: (_: unknown, id: string) => (people.has(id) ? { accountId: id, claims: () => Promise.resolve(claimsOf(id)) } : undefined),
    extraTokenClaims(_: unknown, { accountId }: { accountId?: string }) {
      if (accountId === undefined || !people.has(accountId)) return undefined;
      const { email, email_verified, groups } = claimsOf(accountId);
      return { email, email_verified, groups };
    },
    issueRefreshToken: () => true,
    // By default it sends no requests to this machine, on which the service runs.
    fetch: (url: string, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) => globalThis.fetch(url, options),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: {
      AccessToken: tokenSeconds,
      AuthorizationCode: 60,
      IdToken: 3600,
      RefreshToken: 86_400,
      Session: 86_400,
      Grant: 86_400,
      Interaction: 600,
    },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      introspection: { enabled: true },
      registration: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        // Nobody is asked again whether to sign out.
        logoutSource(ctx: { body: string }, form: string) {
          ctx.body = `<!doctype html><title>Signing out</title>${form}<button type="submit" form="op.logoutForm" name="logout" value="yes">Sign out here too</button>`;
        },
      },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, audience: string) => ({
          ...{ audience, scope: resourceScopes, accessTokenFormat: 'jwt', accessTokenTTL: tokenSeconds },
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}

/** What the library says in a grant that it looks for. */
interface GrantContext {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly account?: { readonly accountId: string };
    readonly params: { readonly resource?: string | readonly string[] };
    readonly provider: Provider;
  };
}

/** Starts an identity provider on loopback (`oidc-provider`), at which people choose who they are. */
export async function startProvider({ people: given, service }: ProviderOptions): Promise<RunningProvider> {
  const people = new Map(given);
  let provider: Provider | undefined;
  let handle: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (provider === undefined || handle === undefined) return void request.socket.destroy();
    if (!request.url!.startsWith('/interaction/')) return void handle(request, response);
    const { uid, prompt } = await provider.interactionDetails(request, response);
    // Everybody agrees.
    if (prompt.name === 'consent')
      return provider.interactionFinished(request, response, { consent: {} }, { mergeWithLastSubmission: true });
    if (request.method !== 'POST') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(chooser(uid, people));
      return;
    }
    const accountId = (await bodyOf(request)).get('person') ?? '';
    await provider.interactionFinished(request, response, { login: { accountId } });
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;

  async function begin(): Promise<void> {
    provider = new Provider(issuer, {
      ...(await configurationOf({ people, service })),
      // Everybody has agreed to what clients of the service want.
      async loadExistingGrant({ oidc }: GrantContext) {
        const grant = new oidc.provider.Grant({ accountId: oidc.account!.accountId, clientId: oidc.client.clientId });
        grant.addOIDCScope(`openid offline_access email profile ${resourceScopes}`);
        for (const resource of [oidc.params.resource ?? []].flat()) grant.addResourceScope(resource, resourceScopes);
        await grant.save();
        return grant;
      },
    });
    handle = provider.callback();
  }
  await begin();

  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    issuer,
    people,
    stop,
    async restart() {
      await stop();
      await begin();
      await listen(port);
    },
  };
}
