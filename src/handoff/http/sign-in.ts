import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

import { ServiceError } from '../../kit/errors.ts';
import type { HandlersOf } from '../../kit/http/handlers.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { Identity } from '../identity/identity.ts';
import type { signInRoutes } from '../model/sign-in.ts';
import { escapeHtml } from '../rules/html.ts';
import type { Caller } from '../service/authentication.ts';
import { handlersOf } from './handlers.ts';

/** The styles of the pages. */
const styles = `:root{color-scheme:light dark}body{margin:0;font:1rem/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;background:light-dark(#f7f7f8,#0e0f12);color:light-dark(#17181c,#e9eaee);overflow-wrap:anywhere}main{max-width:34rem;margin:15vh auto 0;padding:0 1rem}h1{font-size:1.375rem;line-height:1.3}a{color:light-dark(#4450c8,#8e9bff);font-weight:600}`;

/** The headers of every page of sign-in. */
export const signInHeaders = {
  'content-security-policy': `default-src 'none'; img-src data:; style-src 'sha256-${hash('sha256', styles, 'base64')}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** A page with a heading, a sentence, and where to go on. */
function page(heading: string, sentence: string, link: { href: string; text: string }): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(heading)}</title><link rel="icon" href="data:,"><style>${styles}</style></head>
<body><main><h1>${escapeHtml(heading)}</h1><p>${escapeHtml(sentence)}</p><p><a href="${escapeHtml(link.href)}">${escapeHtml(link.text)}</a></p></main></body>
</html>
`;
}

/** The value of a cookie; undefined: the browser sent none, or several. */
export function cookieOf({ cookie = '' }: IncomingHttpHeaders, name: string): string | undefined {
  const values = cookie.split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at !== -1 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
  });
  return values.length === 1 && values[0] !== '' ? values[0] : undefined;
}

/** The cookies of a service at an address. The prefix makes browsers take them from this host alone (RFC 6265bis, 4.1.3.2). */
export function cookiesAt(publicUrl: string) {
  const isSecure = publicUrl.startsWith('https:');
  const prefix = isSecure ? '__Host-' : '';
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    session: `${prefix}baton-session`,
    /** What a browser keeps during a sign-in. Each has its own, so that several can go on at once. */
    signIn: (name: string) => `${prefix}baton-sign-in-${name}`,
    set: (name: string, value: string, seconds: number) => `${name}=${value}; Max-Age=${seconds}${attributes}`,
    clear: (name: string) => `${name}=; Max-Age=0${attributes}`,
  };
}

/** The path of an own page to return to after a sign-in; the console when the value is none. */
function ownPath(returnTo: string | undefined, publicUrl: string): string {
  const fallback = '/console';
  if (returnTo === undefined || returnTo.length > 2048 || !/^\/(?![/\\])[\x21-\x7e]*$/.test(returnTo) || returnTo.includes('\\'))
    return fallback;
  return URL.parse(returnTo, publicUrl)?.origin === new URL(publicUrl).origin ? returnTo : fallback;
}

/** The most characters of sign-ins that a browser keeps; with more, a page that begins many would make all its requests too large. */
const maxKept = 4096;

/** The names of the cookies that begin with a prefix, if they are too long together. */
function tooMany({ cookie = '' }: IncomingHttpHeaders, prefix: string): string[] {
  const own = cookie.split(';').flatMap((pair) => (pair.trim().startsWith(prefix) ? [pair.trim()] : []));
  return own.join('').length > maxKept ? own.map((pair) => pair.split('=', 1)[0]!) : [];
}

/** How long a browser keeps what it needs for the end of a sign-in, in seconds. */
const signInSeconds = 600;

/** The handlers of the pages of sign-in. */
export function signInHandlers(identity: Identity, now: () => Date): HandlersOf<typeof signInRoutes, Caller> {
  const { publicUrl, providerName } = identity;
  const cookies = cookiesAt(publicUrl);
  const origin = new URL(publicUrl).origin;
  const to = (path: string) => publicUrl + path;
  const goTo = (location: string, cookie: string | string[], status = 302) =>
    new HttpResponse<never>({ status, headers: { location, 'set-cookie': cookie } });
  const failed = (error: unknown, path: string) => {
    if (!(error instanceof ServiceError) || error.code === 'SERVER_ERROR') throw error;
    const again = { href: to(`/sign-in?return_to=${encodeURIComponent(path)}`), text: 'Try again' };
    return new HttpResponse<string>({
      status: error.status,
      headers: error.headers,
      body: page('You are not signed in', error.message, again),
    });
  };

  return {
    async signIn({ query }, { headers }) {
      const path = ownPath(query.return_to, publicUrl);
      try {
        const { url, name, kept } = await identity.begin(path, query.prompt);
        const earlier = tooMany(headers, cookies.signIn(''));
        return goTo(url, [cookies.set(cookies.signIn(name), kept, signInSeconds), ...earlier.map(cookies.clear)]);
      } catch (error) {
        return failed(error, path);
      }
    },

    async signInCallback({ query }, { headers }) {
      const parameters = new URLSearchParams(query as Record<string, string>);
      const name = cookies.signIn(identity.nameOf(parameters));
      try {
        const ended = await identity.complete(parameters, cookieOf(headers, name));
        if (ended === undefined)
          throw new ServiceError(
            'VALIDATION_ERROR',
            'This sign-in was not begun in this browser, has ended, or took longer than ten minutes.',
          );
        // The session that the browser had would stay open, and nobody could end it from there.
        const earlier = cookieOf(headers, cookies.session);
        if (earlier !== undefined) await identity.sessions.endEarlier(earlier);
        const seconds = Math.floor((ended.expires.getTime() - now().getTime()) / 1000);
        return goTo(to(ended.returnTo), [cookies.set(cookies.session, ended.token, seconds), cookies.clear(name)]);
      } catch (error) {
        return failed(error, '/console');
      }
    },

    async signOut(_, { headers }) {
      if (headers.origin !== origin) throw new ServiceError('FORBIDDEN', 'Only a page of this service signs people out.');
      const token = cookieOf(headers, cookies.session);
      const url = (token === undefined ? undefined : await identity.sessions.end(token)) ?? to('/signed-out');
      const cookie = cookies.clear(cookies.session);
      if (headers['x-requested-with'] === undefined) return goTo(url, cookie, 303) as never;
      return new HttpResponse({ headers: { 'set-cookie': cookie }, body: { url } });
    },

    signedOut: () =>
      new HttpResponse({
        body: page('You are signed out', `You may still be signed in at ${providerName}.`, {
          href: to('/console'),
          text: 'Open the console',
        }),
      }),

    async backChannelLogout({ body }) {
      const token = new URLSearchParams(typeof body === 'string' ? body : '').get('logout_token') ?? '';
      if (await identity.sessions.endByProvider(token)) return undefined as never;
      throw new ServiceError('VALIDATION_ERROR', 'The body has no logout_token that the identity provider signed for this service.');
    },
  };
}

/** The handlers of the routes of sessions. */
export const sessionHandlers = (identity: Identity | undefined) =>
  handlersOf({
    listSessions: async (_, { caller }) => ({ sessions: await sessionsOf(identity).list(caller) }),
    deleteSession: ({ params }, { caller }) => sessionsOf(identity).remove(caller, params.id),
  });

function sessionsOf(identity: Identity | undefined): Identity['sessions'] {
  if (identity === undefined) throw new ServiceError('NOT_FOUND', 'There are no sessions: SERVICE_OIDC_ISSUER is not set.');
  return identity.sessions;
}
