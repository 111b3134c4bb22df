/** The largest answer of an identity provider, in bytes. */
const maxBytes = 1024 * 1024;

/** How long a provider may take for an answer, in milliseconds. */
const timeoutMs = 5000;

/** Requests of the service to its identity provider, bounded in time and size. Redirects are not followed: no endpoint of a provider has any. */
export async function boundedFetch(url: string, options: RequestInit = {}): Promise<Response> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
  const response = await fetch(url, { ...options, redirect: 'manual', signal });
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > maxBytes) throw new Error(`The identity provider answered with more than ${maxBytes} bytes.`);
    parts.push(part);
  }
  const isBare = response.status === 204 || response.status === 304;
  const { status, statusText, headers } = response;
  return new Response(isBare ? null : Buffer.concat(parts), { status, statusText, headers });
}
