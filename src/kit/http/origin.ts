import { isIP } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '../errors.ts';
import { bareHost, isLoopback, isWildcard } from '../loopback.ts';

/** What a service that answers requests without a key knows about its own pages. */
interface OwnPages {
  /** The configured hosts, which are taken as `Host` besides loopback names. A wildcard address stands for every IP address. */
  readonly hosts: readonly string[];
  /** Foreign origins whose pages may write; `*` allows all. */
  readonly origins?: readonly string[];
  /** Whether the request carries a key. A web page of somebody else has none, so such a request is not checked. */
  readonly hasKey: (request: FastifyRequest) => boolean;
}

/** The header that a request without a key must carry if its body has a type that a form can send. Its value is free. */
const customHeader = 'x-requested-with';

const readMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The types that a form, or a script without a preflight, can send: the CORS-safelisted ones of the Fetch standard. */
const formTypes = new Set(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']);

/**
 * Refuses requests without a key that a web page of somebody else may have caused, with 403:
 * - a `Host` that is not the service's own: a foreign name may have been pointed at this machine (DNS rebinding),
 * - a write with a foreign `Origin`, or with `Sec-Fetch-Site: cross-site`,
 * - a write with a body type that a form can send, without the header `X-Requested-With`.
 */
export function refuseForeignPages(app: FastifyInstance, { hosts, origins = [], hasKey }: OwnPages): void {
  const isOwn = ownHosts(hosts);
  const isAllowed = (origin: string) => origins.includes('*') || origins.includes(origin);

  app.addHook('onRequest', (request, _reply, done) => {
    if (hasKey(request)) return done();
    const { host, origin, 'sec-fetch-site': site, 'content-type': type, [customHeader]: custom } = request.headers;
    // Without Host it is HTTP/1.0, which browsers don't send.
    if (host !== undefined && !isOwn(host))
      return done(
        refusal(`Without a key this service only answers as localhost or its configured host, and the Host header names another.`),
      );
    if (readMethods.has(request.method)) return done();
    const isForeign = origin === undefined ? site === 'cross-site' : !isAllowed(origin) && (site === 'cross-site' || !isSame(origin, host));
    if (isForeign) return done(refusal('Without a key, pages of other origins may not write to this service.'));
    if (type !== undefined && custom === undefined && formTypes.has(essence(type)))
      return done(
        refusal(`A body of type ${essence(type)} needs a key or the header X-Requested-With, because any page's form can send it.`),
      );
    done();
  });
}

/**
 * Returns a function that tells whether a `Host` header names the service: a loopback name, or one of the hosts. A wildcard
 * address among them stands for every IP address.
 */
export function ownHosts(hosts: readonly string[]): (header: string) => boolean {
  const own = new Set(hosts.map(bareHost));
  // A browser sends an address as Host only for a page that came from this address, so it can't be rebound.
  const anyAddress = hosts.some((host) => isWildcard(bareHost(host)));
  return (header) => {
    const host = nameOf(header);
    return isLoopback(host) || own.has(host) || (anyAddress && isIP(host) !== 0);
  };
}

/** Whether an `Origin` header names a host of the service, or is one of the allowed origins. */
export function isOwnOrigin(origin: string, isOwn: (header: string) => boolean, allowed: readonly string[]): boolean {
  return allowed.includes('*') || allowed.includes(origin) || (/^https?:\/\//.test(origin) && isOwn(origin.replace(/^https?:\/\//, '')));
}

const refusal = (detail: string) => new ServiceError('FORBIDDEN', detail);

const essence = (type: string): string => type.split(';', 1)[0]!.trim().toLowerCase();

/** Whether the origin is that of the host. Its scheme is not compared, because a proxy may have ended TLS. */
const isSame = (origin: string, host = ''): boolean => origin.toLowerCase().replace(/^https?:\/\//, '') === host.toLowerCase();

/** The name or address in a Host header; empty if it has none. */
const nameOf = (host: string): string => bareHost(/^(\[[^\]]*\]|[^:[\]]*)(:\d*)?$/.exec(host.trim())?.[1] ?? '');
