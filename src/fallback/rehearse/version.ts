import type { RehearsedGateway } from '../rules/targets/gateway.ts';

/** How long a gateway may take to tell its version, in milliseconds. */
const askMs = 10_000;

/** The version that a running gateway tells; null if it tells none. */
export async function versionAt(url: string, { version }: RehearsedGateway, key: string | undefined): Promise<string | null> {
  if (version === undefined) return null;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  try {
    const response = await fetch(new URL(version.path, url), { headers, redirect: 'manual', signal: AbortSignal.timeout(askMs) });
    const told = ((await response.json()) as Record<string, unknown> | null)?.[version.field];
    return response.ok && typeof told === 'string' && /^[\w.+-]{1,40}$/.test(told) ? told : null;
  } catch {
    // An older one has no such path, and the version is only shown.
    return null;
  }
}
