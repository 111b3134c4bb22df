import type { IncomingHttpHeaders } from 'node:http';

/** One `for=` of a Forwarded header: a token, or a quoted string (RFC 7239, section 4). */
const forParameter = /(?:^|[;,])\s*for=(?:"([^"\\]*)"|([^\s";,]+))/gi;

/**
 * Writes the addresses of a `Forwarded` header (RFC 7239) into X-Forwarded-For, which is read afterwards. With both
 * headers, neither is kept: a proxy that sets only one of them passes on what the client wrote into the other.
 */
export function mergeForwarded(headers: IncomingHttpHeaders): void {
  const { forwarded } = headers;
  if (forwarded === undefined) return;
  if (headers['x-forwarded-for'] !== undefined) {
    delete headers['x-forwarded-for'];
    return;
  }
  const addresses = [...forwarded.matchAll(forParameter)].map(([, quoted, token]) => addressOf(quoted ?? token ?? ''));
  if (addresses.length > 0) headers['x-forwarded-for'] = addresses.join(', ');
}

/** The address of a node: IPv6 stands in brackets, and either may be followed by a port. */
function addressOf(node: string): string {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(node) ?? [];
  return bracketed ?? node.replace(/:\d+$/, '');
}
