import type { Provider } from '../model/chain.ts';
import type { Usage } from './transport.ts';

/** A request as it is sent, its key aside. */
export interface ProviderRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What an answer says once it has been read to its end. */
export interface Answer {
  readonly text: string;
  readonly finishReason: string | null;
  /** Null where the provider did not tell. */
  readonly usage: Usage | null;
}

/** Reads the events of a streaming answer, one after the other. */
export interface StreamReader {
  /** Takes an event; its name is empty where the stream gives none. Throws what is no event of this protocol. */
  take(event: string, data: string): void;
  /** The answer, once the stream has said that it is whole. */
  readonly answer: Answer | undefined;
}

/** A chat API: how a prompt is asked, and how its answer is read. */
export interface ChatProtocol {
  /** The headers that carry a key. */
  keyHeaders(key: string): Readonly<Record<string, string>>;
  request(provider: Provider, prompt: string, stream: boolean): ProviderRequest;
  /** The answer in a JSON body; undefined where it holds none. */
  answerOf(body: unknown): Answer | undefined;
  /** A reader for one streaming answer. */
  readStream(): StreamReader;
}

type Json = Record<string, unknown>;

/** The value as an object whose members may be asked for; an empty one for anything else. */
export const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

/** The value as a list; an empty one for anything else. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The value as a text; null for anything else. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Tokens in and out, where both are told. */
export function usageOf(input: unknown, output: unknown): Usage | null {
  const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;
  return isCount(input) && isCount(output) ? { input_tokens: input, output_tokens: output } : null;
}
