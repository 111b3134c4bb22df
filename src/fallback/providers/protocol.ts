import type { Provider } from '../model/chain.ts';
import type { Usage } from './transport.ts';

/** A complete answer. */
export interface Answer {
  readonly text: string;
  readonly finishReason: string | null;
  /** Null if the provider did not report it. */
  readonly usage: Usage | null;
}

interface StreamReader {
  /**
   * Takes an event; its name is empty if the stream has none. Returns whether it marks the answer as complete. Throws if
   * it is not an event of this protocol.
   */
  take(event: string, data: string): boolean;
  /** Whether anything of the model has arrived: text, reasoning or a tool call. */
  hasContent(): boolean;
  /** The answer so far. */
  answer(): Answer;
}

/** A chat API: creates requests and reads answers. */
export interface ChatProtocol {
  keyHeaders(key: string): Readonly<Record<string, string>>;
  /** A request to a provider, without its key. */
  request(provider: Provider, prompt: string, stream: boolean): { headers: Readonly<Record<string, string>>; body: string };
  /** The answer in a JSON body; undefined if there is none. */
  answerOf(body: unknown): Answer | undefined;
  /** Creates a reader for one streaming answer. */
  readStream(): StreamReader;
}

type Json = Record<string, unknown>;

/** The value if it is an object, else an empty object. */
export const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

/** The value if it is a list, else an empty list. */
export const arrayOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The value if it is a string, else null. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Input and output tokens, if both are reported. */
export function usageOf(input: unknown, output: unknown): Usage | null {
  const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;
  return isCount(input) && isCount(output) ? { input_tokens: input, output_tokens: output } : null;
}
