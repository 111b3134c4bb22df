import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import type { Clock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { Identity } from '../identity/identity.ts';
import type { Scope } from '../model/common.ts';
import type { HandoffRoute } from '../model/route.ts';
import { resourceRoutes, signInRoutes } from '../model/sign-in.ts';
import { tokenScope } from '../rules/identity.ts';
import { type Act, hasRight, sufficientScopes } from '../rules/rights.ts';
import type { Caller } from '../service/authentication.ts';
import type { HandoffMount } from './handlers.ts';
import { cookieOf, cookiesAt, signInHandlers } from './sign-in.ts';

/** The properties of a route that say what a session or a token may do there. */
type Admitted = Pick<HandoffRoute, 'keyInQuery' | 'forPrograms' | 'resource'>;

/** The scopes that each protected resource offers. `/mcp` offers none to answer with: a person answers, not a program. */
const offered = {
  api: ['baton:read', 'baton:work', 'baton:respond', 'baton:manage'],
  mcp: ['baton:read', 'baton:work'],
} as const;

/** The methods of requests that change nothing. */
const reading: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** The access of routes that take no key. */
const withoutKey: ReadonlySet<string> = new Set(['public', 'link', 'sign-in']);

/** The value of a parameter of a challenge (RFC 9110, section 11.2). */
const quoted = (text: string): string => `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, "'")}"`;

/** Who is admitted by a session or by a token of the identity provider, and what refusals tell clients. */
export class IdentityAdmission {
  readonly identity: Identity;
  readonly #origin: string;
  readonly #path: string;
  readonly #sessionCookie: string;

  constructor(identity: Identity) {
    this.identity = identity;
    const { origin, pathname } = new URL(identity.publicUrl);
    this.#origin = origin;
    this.#path = pathname.replace(/\/+$/, '');
    this.#sessionCookie = cookiesAt(identity.publicUrl).session;
  }

  /** The names under which clients reach the service. */
  get hosts(): readonly string[] {
    return [new URL(this.#origin).hostname];
  }

  /** What the console is told about sign-in; undefined: nobody signs in. */
  consoleMetadata(isOnly: boolean): Record<string, string> | undefined {
    const { signsIn, providerName: provider, publicUrl: address } = this.identity;
    return signsIn ? { 'baton-sign-in': JSON.stringify({ provider, address, isOnly }) } : undefined;
  }

  /** The session that a request to the API or a stream sends; undefined: none, or one that is not looked at there. */
  sessionOf({ forPrograms = false }: Admitted, headers: IncomingHttpHeaders): string | undefined {
    return forPrograms || !this.identity.signsIn ? undefined : cookieOf(headers, this.#sessionCookie);
  }

  /**
   * Requires that a request with a session comes from a page of the service, where a page of somebody else could send it too.
   * @throws ServiceError 403
   */
  requireOwnPage({ keyInQuery = false }: Admitted, { method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): void {
    const { origin, 'sec-fetch-site': site, 'x-requested-with': custom } = headers;
    const isOwn = origin === this.#origin;
    if (!reading.has(method)) {
      if (!isOwn || custom !== 'baton')
        throw new ServiceError(
          'FORBIDDEN',
          `With a session, a request that changes something needs X-Requested-With: baton, and ${this.#origin} as its Origin.`,
        );
      return;
    }
    // Browsers send no Origin with a request for a stream to the page's own origin.
    if (keyInQuery && !isOwn && (origin !== undefined || site !== 'same-origin'))
      throw new ServiceError('FORBIDDEN', `With a session, a stream needs ${this.#origin} as its Origin.`);
  }

  /** The caller with a token. @throws ServiceError 401 with a challenge for one that is not taken here */
  async callerWithToken(route: Admitted, token: string, mayAsk: () => void): Promise<Caller | undefined> {
    try {
      return await this.identity.tokens.callerOf(token, route.resource ?? 'api', mayAsk);
    } catch (error) {
      if (error instanceof ServiceError && error.status === 401)
        throw new ServiceError('UNAUTHORIZED', error.message, {
          headers: { 'www-authenticate': this.challenge(route, { error: 'invalid_token', detail: error.message }) },
        });
      throw error;
    }
  }

  /** The challenge of a 401 or a 403 (RFC 6750, section 3; RFC 9728, section 5.1). */
  challenge({ resource }: Admitted, more: { error?: string; detail?: string; scope?: string } = {}): string {
    const scope = more.scope ?? (resource === 'mcp' ? offered.mcp.join(' ') : undefined);
    const parts = [
      `realm="baton"`,
      ...(more.error === undefined ? [] : [`error=${quoted(more.error)}`]),
      ...(more.detail === undefined ? [] : [`error_description=${quoted(more.detail)}`]),
      `resource_metadata=${quoted(this.#metadataAt(resource))}`,
      ...(scope === undefined ? [] : [`scope=${quoted(scope)}`]),
    ];
    return `Bearer ${parts.join(', ')}`;
  }

  /** Puts the challenge on each 401 and 429 that has none, so that a client learns how it gets a token, except where no key is taken. */
  challengeRefused(app: FastifyInstance): void {
    app.addHook('onSend', ({ exchange, routeOfPath }, reply, _, done) => {
      const { statusCode: status } = reply;
      if ((status === 401 || status === 429) && !reply.hasHeader('www-authenticate')) {
        const route = (exchange?.route ?? routeOfPath ?? {}) as Partial<HandoffRoute>;
        // Without a route, a key is looked at on every path.
        const takesKey = exchange === null || !withoutKey.has(route.access ?? 'any');
        if (takesKey) reply.header('www-authenticate', this.challenge(route));
      }
      done();
    });
  }

  /** The challenge for a token that lacks only a scope, which names what the client has and what it needs; undefined for others. */
  stepUp(route: Admitted, caller: Caller, act: Act): string | undefined {
    const { kind, grantable = [], scopes } = caller;
    if (kind !== 'token' || hasRight(caller, act)) return undefined;
    const offers: readonly string[] = offered[route.resource ?? 'api'];
    const missing = sufficientScopes(act).find(
      (scope) => grantable.includes(scope as Scope) && offers.includes(tokenScope(scope as Scope) ?? ''),
    );
    if (missing === undefined) return undefined;
    const held = [...(scopes ?? []), missing as Scope]
      .flatMap((scope) => tokenScope(scope) ?? [])
      .filter((scope) => offers.includes(scope));
    return this.challenge(route, {
      error: 'insufficient_scope',
      detail: `This needs the scope ${tokenScope(missing as Scope)}.`,
      scope: held.join(' '),
    });
  }

  #metadataAt(resource: 'mcp' | undefined): string {
    return `${this.#origin}/.well-known/oauth-protected-resource${this.#path}${resource === 'mcp' ? '/mcp' : ''}`;
  }

  /** Mounts the metadata of the protected resources, and the pages of sign-in. */
  mount(mount: HandoffMount, clock: Clock): void {
    const { publicUrl, signsIn } = this.identity;
    const metadataOf = (resource: string, scopes_supported: readonly string[]) => () =>
      new HttpResponse({
        // Clients in pages read it too.
        headers: { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' },
        body: {
          resource,
          authorization_servers: [this.identity.issuer()],
          scopes_supported,
          bearer_methods_supported: ['header'],
          resource_name: 'Baton',
        } as Record<string, unknown>,
      });
    const api = metadataOf(publicUrl, offered.api);
    const mcp = metadataOf(`${publicUrl}/mcp`, offered.mcp);
    const { protectedResource, protectedMcp } = resourceRoutes;
    mount(protectedResource, api);
    mount(protectedMcp, mcp);
    if (this.#path !== '') {
      // RFC 9728, section 3.1: the path of the resource follows the well-known one.
      mount({ ...protectedResource, id: 'protectedResourceAtPath', path: protectedResource.path + this.#path }, api);
      mount({ ...protectedMcp, id: 'protectedMcpAtPath', path: `${protectedResource.path}${this.#path}/mcp` }, mcp);
    }
    if (!signsIn) return;
    const handlers = signInHandlers(this.identity, clock);
    mount(signInRoutes.signIn, handlers.signIn as never);
    mount(signInRoutes.signInCallback, handlers.signInCallback as never);
    mount(signInRoutes.signOut, handlers.signOut as never);
    mount(signInRoutes.signedOut, handlers.signedOut as never);
    mount(signInRoutes.backChannelLogout, handlers.backChannelLogout as never);
  }

  /** Sets the challenge of a request whose token lacks only a scope. */
  note(reply: FastifyReply, route: Admitted, caller: Caller, act: Act): void {
    const challenge = this.stepUp(route, caller, act);
    if (challenge !== undefined) reply.header('www-authenticate', challenge);
  }
}
