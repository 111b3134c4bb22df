import { notFound } from '../../kit/errors.ts';
import type { RandomSource } from '../../kit/id.ts';
import { isId } from '../../kit/uuid.ts';
import type { Store } from '../store/store.ts';

/** The number of random bytes of a token. */
const tokenBytes = 16;

/**
 * Creates the operations on rehearsal tokens: each chain has one, made when it is first needed.
 * @param given the token of every chain instead of a random one
 */
export function createRehearsalTokens({ chains }: Pick<Store, 'chains'>, random: RandomSource, given?: string) {
  const newToken = () => {
    if (given !== undefined) return given;
    const bytes = Buffer.alloc(tokenBytes);
    random(bytes);
    return bytes.toString('hex');
  };
  async function set(id: string, replace: boolean): Promise<string> {
    const token = isId(id) ? await chains.setToken(id, newToken(), replace) : undefined;
    if (token === undefined) throw notFound('chain');
    return token;
  }
  return {
    /** The token of a chain. @throws ServiceError 404 for an unknown chain */
    of: async (id: string): Promise<string> => (isId(id) ? await chains.token(id) : undefined) ?? set(id, false),
    /** A new token of a chain. @throws ServiceError 404 for an unknown chain */
    renew: (id: string): Promise<string> => set(id, true),
  };
}

export type RehearsalTokens = ReturnType<typeof createRehearsalTokens>;

/** The address of the fake providers with a token. */
export const fakeBase = (origin: string, token: string): string => `${origin.replace(/\/+$/, '')}/rehearsal/${token}`;
