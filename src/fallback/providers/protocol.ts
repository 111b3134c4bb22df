import type { Provider } from '../model/chain.ts';
import type { Shape } from '../rules/shapes.ts';
import type { Usage } from './transport.ts';

/** A call of a tool in an answer; its arguments are a text, which need not be JSON. */
interface ToolCall {
  readonly name: string | null;
  readonly arguments: string;
}

/** A complete answer. */
export interface Answer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** The parts in which text and arguments arrived. */
  readonly chunks: number;
  readonly model: string | null;
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
  request(provider: Provider, prompt: string, shape: Shape): { headers: Readonly<Record<string, string>>; body: string };
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

/** A part of an answer: a text, or the parts of a tool's call. */
interface Part {
  readonly text?: string | undefined;
  /** The place of a tool's call among others. */
  readonly call?: string | number | undefined;
  readonly name?: string | null;
  readonly arguments?: string;
}

/** Collects a streamed answer from its parts. */
export class AnswerParts {
  #text = '';
  #chunks = 0;
  #hasOther = false;
  readonly #calls = new Map<string | number, { name: string | null; arguments: string }>();
  model: string | null = null;
  finishReason: string | null = null;
  usage: Usage | null = null;

  add({ text = '', call, name = null, arguments: given = '' }: Part): void {
    this.#text += text;
    if (text !== '' || given !== '') this.#chunks += 1;
    if (call === undefined) return;
    const known = this.#calls.get(call) ?? { name: null, arguments: '' };
    this.#calls.set(call, { name: known.name ?? name, arguments: known.arguments + given });
  }

  /** Notes content that is neither text nor a call of a tool, such as reasoning. */
  addOther(): void {
    this.#hasOther = true;
  }

  hasContent(): boolean {
    return this.#text !== '' || this.#hasOther || this.#calls.size > 0;
  }

  answer(): Answer {
    const { model, finishReason, usage } = this;
    return { text: this.#text, toolCalls: [...this.#calls.values()], chunks: this.#chunks, model, finishReason, usage };
  }
}
