import { createReadStream, statSync } from 'node:fs';

import { ApiError } from '../../kit/client-errors.ts';
import { readClearJson, readJson, requireFinite, UnclearJson } from '../../kit/json.ts';
import { notUtf8, strictDecoder } from '../../kit/text-file.ts';
import { askedFor, named } from './errors.ts';
import { CliError, type Terminal } from './terminal.ts';

/** A value in a file or on standard input. */
export interface Document {
  readonly value: unknown;
  /** Why a line could not be parsed, with its line number; other lines may still be valid. */
  readonly fault?: string;
  /** How much of the input has been read after it, from 0 to 1; undefined when the total is unknown. */
  readonly done: number | undefined;
  /** The location of one of its fields, as `file:line`. */
  readonly locationOf: (field: string) => Promise<string>;
}

/** The values of an input: one, or several from a list, YAML documents or JSON lines. */
export type Input = { readonly one: Document } | { readonly many: AsyncIterable<Document> | Iterable<Document> };

/** The most bytes of an input that is read as a whole, and of a line of JSON Lines. */
const maxText = 256 * 1024 * 1024;
const maxLine = 64 * 1024 * 1024;
const mebibytes = (bytes: number) => `${bytes / 1024 / 1024} MiB`;

/** Reads a file of JSON, YAML or JSON lines. @throws CliError with the line of a syntax error */
export async function readInput(file: string, { stdin }: Pick<Terminal, 'stdin'>): Promise<Input> {
  const name = file === '-' ? 'standard input' : file;
  const chunks = file === '-' ? stdin() : bytesOf(file);
  if (/\.(jsonl|ndjson)$/i.test(file)) return { many: documentsIn(chunks, name, statSync(file).size) };
  const text = await textOf(chunks, name);
  if (text.trim() === '') throw new CliError(`${name} is empty.`);
  if (/^\s*[[{]/.test(text) && !/\.ya?ml$/i.test(file))
    return isLines(text) ? { many: documentsIn([text], name, undefined) } : documentsOf(name, text, [parseJson(text, name)]);
  if (/\.json$/i.test(file)) return documentsOf(name, text, [parseJson(text, name)]);
  return documentsOf(name, text, await parseYaml(text, name));
}

/** The bytes of a file. It is opened at the first read, so that a failure always has a reader. */
async function* bytesOf(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file);
  } catch (error) {
    // The error of a folder does not name it.
    throw Object.assign(error as Error, { path: file });
  }
}

/** The only value of an input. */
export async function readDocument(file: string, terminal: Pick<Terminal, 'stdin'>): Promise<Document> {
  const input = await readInput(file, terminal);
  if ('one' in input) return input.one;
  throw new CliError(`${file} must contain one value, not several.`);
}

/** The whole text. @throws CliError when it is too long */
async function textOf(stream: AsyncIterable<Buffer | string>, name: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
    size += chunk.length;
    if (size > maxText) throw new CliError(`${name} is larger than ${mebibytes(maxText)}; use JSON Lines in a .jsonl file.`);
  }
  return decoded(name, () => strictDecoder().decode(Buffer.concat(chunks)));
}

/** The lines of a text. @throws CliError when one is too long */
export async function* linesOf(chunks: AsyncIterable<Buffer | string> | Iterable<string>, name: string): AsyncGenerator<string> {
  const decoder = strictDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const [first, ...more] = (typeof chunk === 'string' ? chunk : decoded(name, () => decoder.decode(chunk, { stream: true }))).split('\n');
    rest += first;
    for (const next of more) {
      yield rest;
      rest = next;
    }
    if (rest.length > maxLine) throw new CliError(`${name} has a line of more than ${mebibytes(maxLine)}.`);
  }
  // A character that was begun and not ended.
  rest += decoded(name, () => decoder.decode());
  if (rest !== '') yield rest;
}

/** The text of bytes in UTF-8. @throws CliError when they are in another encoding, whose characters would be lost */
function decoded(name: string, decode: () => string): string {
  try {
    return decode();
  } catch {
    throw new CliError(`${name} is ${notUtf8}.`);
  }
}

function documentsOf(name: string, text: string, values: readonly unknown[]): Input {
  const [value] = values;
  const list = values.length > 1 ? values : Array.isArray(value) ? value : undefined;
  if (list === undefined) return { one: documentOf(name, text, value, [], 1) };
  return { many: list.map((item, index) => documentOf(name, text, item, [index], (index + 1) / list.length)) };
}

function documentOf(name: string, text: string, value: unknown, path: readonly number[], done: number): Document {
  return {
    value,
    done,
    async locationOf(field) {
      const line = await lineOf(text, [...path, ...field.split('.').filter((part) => part !== '')]);
      return line === undefined ? name : `${name}:${line}`;
    },
  };
}

/** The values of JSON lines; empty lines are skipped. */
async function* documentsIn(
  chunks: AsyncIterable<Buffer | string> | Iterable<string>,
  name: string,
  size: number | undefined,
): AsyncGenerator<Document> {
  let number = 0;
  let read = 0;
  for await (const line of linesOf(chunks, name)) {
    number += 1;
    read += Buffer.byteLength(line) + 1;
    const text = line.replace(/^\uFEFF/, '').trim();
    const lineNumber = number;
    if (text === '') continue;
    const done = size === undefined ? undefined : Math.min(1, read / size);
    yield { ...parsed(text, name, number), done, locationOf: async () => `${name}:${lineNumber}` };
  }
}

/** Whether a text is JSON lines: its first line is complete JSON, and more lines follow. */
function isLines(text: string): boolean {
  const [first, ...rest] = text.split('\n').filter((line) => line.trim() !== '');
  try {
    readJson(first ?? '');
    return rest.length > 0;
  } catch {
    return false;
  }
}

/** The value of a line, or the error in it. */
function parsed(text: string, name: string, line: number): Pick<Document, 'value' | 'fault'> {
  try {
    return { value: parseJson(text, name, line) };
  } catch (error) {
    return { value: undefined, fault: (error as CliError).message };
  }
}

/** @throws CliError with the line of the syntax error */
function parseJson(text: string, name: string, line?: number): unknown {
  try {
    return readClearJson(text);
  } catch (error) {
    if (error instanceof UnclearJson) throw new CliError(`${line === undefined ? name : `${name}:${line}`}: ${error.message}.`);
    const before = text.slice(0, faultIndex(text, error as SyntaxError)).split('\n');
    const sentence = (error as SyntaxError).message.split(/ in JSON at |, (?:\.\.\.)?"/)[0]!;
    throw new CliError(`${name}:${line ?? before.length}:${before.at(-1)!.length + 1}: invalid JSON: ${sentence}.`);
  }
}

/** The index of the first fault in a JSON text. If V8 does not state it, it follows the longest prefix that lacks nothing but its end. */
function faultIndex(text: string, { message }: SyntaxError): number {
  const stated = positionIn(message);
  if (stated !== undefined) return stated;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (endsEarly(text.slice(0, middle))) least = middle;
    else most = middle - 1;
  }
  return least;
}

function endsEarly(text: string): boolean {
  try {
    readJson(text);
    return true;
  } catch (error) {
    const { message } = error as SyntaxError;
    return message === 'Unexpected end of JSON input' || (positionIn(message) ?? -1) >= text.length;
  }
}

function positionIn(message: string): number | undefined {
  const found = / at position (\d+)/.exec(message)?.[1];
  return found === undefined ? undefined : Number(found);
}

async function parseYaml(text: string, name: string): Promise<unknown[]> {
  const { parseAllDocuments } = await import('yaml');
  return [...parseAllDocuments(text)].map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) {
      const [{ line, col } = { line: 1, col: 1 }] = fault.linePos ?? [];
      throw new CliError(`${name}:${line}:${col}: invalid YAML, ${fault.message.split(' at line ')[0]}.`);
    }
    const value: unknown = document.toJS();
    try {
      requireFinite(value);
    } catch (error) {
      throw new CliError(`${name}: ${(error as UnclearJson).message}.`);
    }
    return value;
  });
}

/** The line of a value in JSON or YAML; for a missing value, the line of its parent. */
async function lineOf(text: string, path: readonly (string | number)[]): Promise<number | undefined> {
  const { LineCounter, parseAllDocuments } = await import('yaml');
  const lineCounter = new LineCounter();
  const documents = [...parseAllDocuments(text, { lineCounter })];
  const [first, ...rest] = path;
  const document = documents.length > 1 ? documents[Number(first)] : documents[0];
  const inside = documents.length > 1 ? rest : [...path];
  for (let length = inside.length; length >= 0; length -= 1) {
    const node = document?.getIn(inside.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range !== undefined) return lineCounter.linePos(node.range[0]).line;
  }
  return undefined;
}

/** Adds the line to an error about a field of the document; returns any other error unchanged. */
export async function located(error: unknown, { locationOf }: Document): Promise<unknown> {
  if (!(error instanceof ApiError) || error.field === null) return error;
  const faults = error.errors.length > 0 ? error.errors : [{ field: error.field, detail: error.message }];
  const lines = await Promise.all(faults.map(async ({ field, detail }) => `${await locationOf(field)}: ${named(field, detail)}`));
  return new CliError([...lines, ...askedFor(error.body)].join('\n'), 1);
}
