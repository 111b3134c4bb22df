import { ClientError } from '../../kit/client-errors.ts';
import { systemClock } from '../../kit/clock.ts';
import { readJson } from '../../kit/json.ts';
import type { PacketSummary } from '../model/packet.ts';

/** A webhook has no genuine signature, or is too old. */
export class WebhookError extends ClientError {}

/** The body of a genuine webhook. */
export interface DeliveredEvent {
  /** For example `packet.created`. */
  readonly type: string;
  readonly packet_id: string;
  /** Null for a packet that was removed permanently. */
  readonly data: PacketSummary | null;
  readonly timestamp: string;
}

interface VerifyOptions {
  /** How far the time of the webhook may be from `now`, in seconds; 300 by default. */
  readonly tolerance?: number;
  /** The time in seconds since 1970; by default the system's. */
  readonly now?: number;
}

/** Headers of a request by name in any case, as Node has them, or those of `fetch`. */
type GivenHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The event of a genuine webhook. The signature of Standard Webhooks must be made with the secret, or with what `whsec_<base64>`
 * encodes, and `webhook-timestamp` be recent. `X-SERVICE-Signature`, made with the newest secret alone, must hold as well; only while
 * two secrets overlap, which `webhook-signature` shows by a second signature, the older one verifies by that header alone.
 * @param body the raw body
 * @throws WebhookError when a signature does not hold, or the webhook is too old
 */
export async function verifyWebhook(
  secret: string,
  headers: GivenHeaders,
  body: string | Uint8Array,
  { tolerance = 300, now = systemClock().getTime() / 1000 }: VerifyOptions = {},
): Promise<DeliveredEvent> {
  const found = byName(headers);
  const stamp = found.get('webhook-timestamp') ?? '';
  if (!/^\d{1,20}$/.test(stamp)) throw new WebhookError('The header webhook-timestamp is missing or is no number.');
  if (Math.abs(now - Number(stamp)) > tolerance) throw new WebhookError('The webhook is too old, or the clocks differ.');
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${found.get('webhook-id') ?? ''}.${stamp}.`), bytes);
  const given = (found.get('webhook-signature') ?? '').split(' ').filter((one) => one !== '');
  const standard = await Promise.all(given.map((one) => isMac(standardKey(secret), signed, decoded(one, /^v1,(.+)$/, fromBase64))));
  if (!standard.includes(true)) throw new WebhookError('webhook-signature does not sign this body with the secret.');
  const plain = decoded(found.get('x-service-signature') ?? '', /^sha256=([0-9a-f]{64})$/, fromHex);
  if (given.length < 2 && !(await isMac(new TextEncoder().encode(secret), bytes, plain)))
    throw new WebhookError('X-SERVICE-Signature does not sign this body with the secret.');
  try {
    return readJson<DeliveredEvent>(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new WebhookError('The body is no JSON.');
  }
}

function byName(headers: GivenHeaders): ReadonlyMap<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? '')]));
}

/** The key of Standard Webhooks: what `whsec_<base64>` encodes, and the bytes of any other secret. */
function standardKey(secret: string): Uint8Array {
  return decoded(secret, /^whsec_(.+)$/, fromBase64) ?? new TextEncoder().encode(secret);
}

/** Whether the signature is the HMAC-SHA-256 of the bytes. WebCrypto compares in constant time. */
async function isMac(key: Uint8Array, bytes: Uint8Array, signature: Uint8Array | undefined): Promise<boolean> {
  if (signature === undefined || key.length === 0) return false;
  const imported = await crypto.subtle.importKey('raw', owned(key), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  return crypto.subtle.verify('HMAC', imported, owned(signature), owned(bytes));
}

/** A copy that shares its memory with nothing, as WebCrypto takes it. */
const owned = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);

const joined = (one: Uint8Array, other: Uint8Array): Uint8Array => {
  const whole = new Uint8Array(one.length + other.length);
  whole.set(one);
  whole.set(other, one.length);
  return whole;
};

/** The bytes in what a pattern finds; undefined if it does not fit, or they can't be decoded. */
function decoded(text: string, pattern: RegExp, decode: (text: string) => Uint8Array): Uint8Array | undefined {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) return undefined;
  try {
    return decode(found);
  } catch {
    return undefined;
  }
}

const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const fromHex = (text: string): Uint8Array => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
