import { readJson } from '../../../kit/json.ts';
import { type Colour, coloured } from './text.ts';

/** A part of a line in a colour. */
interface Span {
  readonly text: string;
  readonly colour: Colour | undefined;
}
export type Line = string | readonly (string | Span)[];

/** Control characters (C0, DEL, C1), format characters such as bidirectional controls, other line ends, and lone surrogates. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Standard output or standard error. It is the only code that writes to a stream, and what it writes is printable: a text
 * from a packet or a server can neither move the cursor, nor set colours, nor hide or reorder other text.
 */
export class Writer {
  readonly #stream: NodeJS.WriteStream;
  readonly #mayColour: boolean;

  /** Colours are used on a terminal only, and not when NO_COLOR is set (no-color.org). */
  constructor(stream: NodeJS.WriteStream, { NO_COLOR, TERM }: Readonly<Record<string, string | undefined>>) {
    this.#stream = stream;
    this.#mayColour = stream.isTTY === true && !NO_COLOR && TERM !== 'dumb';
  }

  /** The width of the terminal; undefined if the stream is not a terminal. */
  get columns(): number | undefined {
    return this.#stream.isTTY ? this.#stream.columns || 80 : undefined;
  }

  /** Writes a line. */
  line(line: Line): void {
    this.#stream.write(`${this.#printable(line)}\n`);
  }

  /** Writes a text of several lines, such as help. */
  block(text: string): void {
    this.#stream.write(text.split('\n').map(printable).join('\n'));
  }

  /** Writes a JSON text, indented on a terminal. Unprintable characters in its strings are escaped, so its value stays the same. */
  json(text: string): void {
    this.event(this.columns === undefined ? text.trimEnd() : JSON.stringify(readJson(text), null, 2));
  }

  /** Writes a JSON text as it is, but with its unprintable characters escaped. */
  event(text: string): void {
    // Outside of strings a control character of JSON is white space, and strings have none below U+0020.
    this.#stream.write(`${text.replace(/[\r\t]/g, ' ').replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped)}\n`);
  }

  /** Writes the question before an input, without a line end. */
  question(text: string): void {
    this.#stream.write(printable(text));
  }

  /** Replaces the current line of a terminal; without a text it removes it. */
  status(text = ''): void {
    this.#stream.write(`\r${printable(text)}\x1b[K`);
  }

  #printable(line: Line): string {
    if (typeof line === 'string') return printable(line);
    const texts = line.map((part) => {
      if (typeof part === 'string') return printable(part);
      return this.#mayColour ? coloured(printable(part.text), part.colour) : printable(part.text);
    });
    return texts.join('').trimEnd();
  }
}

const printable = (text: string) => text.replace(unprintable, ' ');

const escaped = (character: string) =>
  Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('');
