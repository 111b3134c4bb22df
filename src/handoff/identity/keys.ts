import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';

import type { Clock } from '../../kit/clock.ts';
import { boundedFetch } from './fetch.ts';

/** How long after a look-up an unknown key is not looked up again, in milliseconds. */
const unknownMs = 60_000;

/** How long keys are used before they are read again, so that one that the provider has withdrawn goes, in milliseconds. */
const freshMs = 10 * 60_000;

/** How long after a failure the keys are not read again, while there are none, in milliseconds. */
const failedMs = 5000;

/** The keys with which an identity provider signs: read when the first token needs them, and again when a token names an unknown one. */
export class SigningKeys {
  readonly #url: () => Promise<string>;
  readonly #clock: Clock;
  #find: ReturnType<typeof createLocalJWKSet> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #failure: unknown;

  /** @param url where the provider publishes its keys */
  constructor(url: () => Promise<string>, clock: Clock) {
    this.#url = url;
    this.#clock = clock;
  }

  /** The key that a token names. @throws an error of jose when there is none, or of the request to the provider */
  readonly get: JWTVerifyGetKey = async (header, token) => {
    if (this.#find === undefined) await this.#read(failedMs);
    else if (this.#age() > freshMs) await this.#read(freshMs);
    if (this.#find === undefined) throw this.#failure;
    try {
      return await this.#find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#read(unknownMs);
      return this.#find(header, token);
    }
  };

  #age(): number {
    return this.#clock().getTime() - this.#readAt;
  }

  /** Reads the keys, unless the last look-up was less than `ms` ago. Those that wait meanwhile share one request; a failure leaves the keys as they are. */
  async #read(ms: number): Promise<void> {
    if (this.#reading === undefined && this.#age() < ms) return;
    this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #load(): Promise<void> {
    this.#readAt = this.#clock().getTime();
    try {
      const response = await boundedFetch(await this.#url(), { headers: { accept: 'application/json' } });
      if (!response.ok) throw new Error(`The identity provider answered ${response.status} for its keys.`);
      this.#find = createLocalJWKSet((await response.json()) as JSONWebKeySet);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
    }
  }
}
