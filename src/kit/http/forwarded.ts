import type { IncomingHttpHeaders } from 'node:http';

/** One `for=` of a Forwarded header: a token, or a quoted string (RFC 7239, section 4). */
const forParameter = /(?:^|[;,])\s*for=(?:"([^"\\]*)"|([^\s";,]+))/gi;

/**
 * Writes the addresses of a `Forwarded` header (RFC 7239), or of X-Forwarded-For, into X-Forwarded-For without their ports, which
 * some proxies add. With both headers, neither is kept: a proxy that sets only one of them passes on what the client wrote into the
 * other.
 */
export function mergeForwarded(headers: IncomingHttpHeaders): void {
  const { forwarded } = headers;
  const given = headers['x-forwarded-for'];
  if (forwarded === undefined) {
    if (given !== undefined) headers['x-forwarded-for'] = String(given).split(',').map(addressOf).join(', ');
    return;
  }
  if (given !== undefined) {
    delete headers['x-forwarded-for'];
    return;
  }
  const addresses = [...forwarded.matchAll(forParameter)].map(([, quoted, token]) => addressOf(quoted ?? token ?? ''));
  if (addresses.length > 0) headers['x-forwarded-for'] = addresses.join(', ');
}

/** The address of a node: IPv6 may stand in brackets, which must be there before a port. */
function addressOf(node: string): string {
  const address = node.trim();
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(address) ?? [];
  return bracketed ?? address.replace(/^([^:]*):\d+$/, '$1');
}
