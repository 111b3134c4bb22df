import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';

import { tokenIn, withToken } from './text.ts';

/** A key of idempotency as its sender knows it, and the origin of the sender's family of keys, to which it belongs. */
export interface SentKey {
  readonly origin: string;
  readonly key: string;
}

/** What a key of idempotency is stored as: equal for equal keys of one family only, and not to be read back. */
export const storedKeyOf = ({ origin, key }: SentKey): string => hash('sha256', `${origin}\n${key}`);

const algorithm = 'aes-256-gcm';
/** Each key encrypts one text, so that its nonce need not differ. */
const nonce = Buffer.alloc(12);
const tagBytes = 16;

/** The key that encrypts the token of an answer: of the key of idempotency, which only its sender has, and of the answer. */
const encryptionKey = ({ origin, key }: SentKey, answer: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, origin, `lease token ${hash('sha256', answer)}`, 32));

/** The answer to a claim as it is stored: its lease token, if it has one, is encrypted. */
export function sealedAnswer(answer: string, sent: SentKey): string {
  const token = tokenIn(answer);
  if (token === undefined) return answer;
  const cipher = createCipheriv(algorithm, encryptionKey(sent, withToken(answer, '')), nonce);
  const sealed = Buffer.concat([cipher.update(token), cipher.final(), cipher.getAuthTag()]);
  return withToken(answer, sealed.toString('base64url'));
}

/** The answer of which `sealedAnswer` made this. @throws Error when it was stored for another key */
export function openedAnswer(stored: string, sent: SentKey): string {
  const token = tokenIn(stored);
  if (token === undefined) return stored;
  const sealed = Buffer.from(token, 'base64url');
  const decipher = createDecipheriv(algorithm, encryptionKey(sent, withToken(stored, '')), nonce);
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  return withToken(stored, Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]).toString());
}
