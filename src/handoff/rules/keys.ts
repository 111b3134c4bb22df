import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** What keys of our own making begin with. */
const prefix = 'svc_';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretLength = 43;
const checksumLength = 6;

/** How many random bytes a key is made from. */
export const keyBytes = 32;

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text;
  return text;
}

/** A new key: `svc_`, 43 base62 characters of the random bytes, 6 of their CRC-32. */
export function keyFrom(random: Buffer): string {
  const secret = base62(BigInt(`0x${random.toString('hex')}`), secretLength);
  return prefix + secret + checksumOf(secret);
}

function checksumOf(secret: string): string {
  return base62(BigInt(crc32(secret)), checksumLength);
}

/** The longest value looked at; a key of one's own choosing may have any form. */
const maxKeyLength = 512;

/** Whether a value could be a key: one that begins like ours must have our form and its own checksum. */
export function looksLikeKey(value: string): boolean {
  if (value.length === 0 || value.length > maxKeyLength) return false;
  if (!value.startsWith(prefix)) return true;
  const secret = value.slice(prefix.length, -checksumLength);
  return secret.length === secretLength && checksumOf(secret) === value.slice(-checksumLength);
}

/** What is stored of a key. A key has more than 250 random bits, so a plain digest can't be searched backwards. */
export function hashOf(key: string): string {
  return hash('sha256', key);
}

/** What is shown of a key in lists. */
export function prefixOf(key: string): string {
  return key.slice(0, 8);
}
