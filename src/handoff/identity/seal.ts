import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { RandomSource } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';

/** The lengths of AES-256-GCM, in bytes. */
const nonceLength = 12;
const tagLength = 16;

/** How many bytes a key has. */
export const sealKeyLength = 32;

/** Encrypts small values with a key that only the service has (AES-256-GCM). */
export class Seal {
  readonly #key: Buffer;
  readonly #random: RandomSource;

  constructor(key: Buffer, random: RandomSource) {
    this.#key = key;
    this.#random = random;
  }

  /** The value, encrypted, as text. `purpose` is needed to open it. */
  close(value: object, purpose: string): string {
    const nonce = Buffer.alloc(nonceLength);
    this.#random(nonce);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
  }

  /** The value of a text that `close` made for the purpose; undefined for any other. */
  open<Value>(text: string, purpose: string): Value | undefined {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < nonceLength + tagLength) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, nonceLength)).setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(-tagLength));
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(nonceLength, -tagLength)), decipher.final()]);
      return readJson<Value>(opened.toString());
    } catch {
      // It was changed, or made with another key.
      return undefined;
    }
  }
}
