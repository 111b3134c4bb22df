import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The prefix of generated keys. */
export const keyPrefix = 'svc_';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretLength = 43;
const checksumLength = 6;

/** How many random bytes a key needs. */
export const keyBytes = 32;

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text;
  return text;
}

/** Makes a key: `svc_`, the random bytes as 43 base62 characters, and the CRC-32 of those characters as 6 more. */
export function keyFrom(random: Buffer): string {
  const secret = base62(BigInt(`0x${random.toString('hex')}`), secretLength);
  return keyPrefix + secret + checksumOf(secret);
}

function checksumOf(secret: string): string {
  return base62(BigInt(crc32(secret)), checksumLength);
}

/** The longest key that is looked up. A key chosen by the operator (`SERVICE_ADMIN_KEY`) may have any form. */
const maxKeyLength = 512;

/** Whether a value could be a key: a value with our prefix must have the right length and checksum. */
export function looksLikeKey(value: string): boolean {
  if (value.length === 0 || value.length > maxKeyLength) return false;
  if (!value.startsWith(keyPrefix)) return true;
  const secret = value.slice(keyPrefix.length, -checksumLength);
  return secret.length === secretLength && checksumOf(secret) === value.slice(-checksumLength);
}

/** The hash that is stored for a key. A key has more than 250 random bits, so a plain digest can't be reversed by search. */
export function hashOf(key: string): string {
  return hash('sha256', key);
}

/** The part of a key that lists show. */
export function prefixOf(key: string): string {
  return key.slice(0, 8);
}
