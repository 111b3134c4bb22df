import { createReadStream, readFileSync, statSync } from 'node:fs';

import { ApiError } from '../../kit/client-errors.ts';
import { jsonFault } from './json-fault.ts';
import { CliError, type Terminal } from './terminal.ts';

/** A value in a file or on standard input. */
export interface Document {
  readonly value: unknown;
  /** Why a line could not be parsed, with its line number; other lines may still be valid. */
  readonly fault?: string;
  /** How much of the input has been read after it, from 0 to 1; undefined when the total is unknown. */
  readonly done: number | undefined;
  /** The place of one of its fields, as `file:line`. */
  placeOf(field: string): Promise<string>;
  /** Adds the line to an error about one of its fields; returns any other error unchanged. */
  located(error: unknown): Promise<unknown>;
}

/** The values of an input: one, or several from a list, YAML documents or JSON lines. */
export type Input = { readonly one: Document } | { readonly many: AsyncIterable<Document> | Iterable<Document> };

/** Reads a file of JSON, YAML or JSON lines. @throws CliError with the line of a syntax error */
export async function readInput(file: string, { stdin }: Terminal): Promise<Input> {
  const name = file === '-' ? 'standard input' : file;
  if (/\.(jsonl|ndjson)$/i.test(file)) return { many: linesOf(createReadStream(file), name, statSync(file).size) };
  const text = (file === '-' ? await textOf(stdin) : readFileSync(file, 'utf8')).replace(/^\uFEFF/, '');
  if (text.trim() === '') throw new CliError(`${name} is empty.`);
  if (/^\s*[[{]/.test(text) && !/\.ya?ml$/i.test(file))
    return isLines(text) ? { many: linesOf([text], name, undefined) } : documentsOf(name, text, [parseJson(text, name)]);
  if (/\.json$/i.test(file)) return documentsOf(name, text, [parseJson(text, name)]);
  return documentsOf(name, text, await parseYaml(text, name));
}

/** The only value of an input. */
export async function readDocument(file: string, terminal: Terminal): Promise<Document> {
  const input = await readInput(file, terminal);
  if ('one' in input) return input.one;
  throw new CliError(`${file} must contain one value, not several.`);
}

async function textOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function documentsOf(name: string, text: string, values: readonly unknown[]): Input {
  const [value] = values;
  const list = values.length > 1 ? values : Array.isArray(value) ? value : undefined;
  if (list === undefined) return { one: documentOf(name, text, value, [], 1) };
  return { many: list.map((item, index) => documentOf(name, text, item, [index], (index + 1) / list.length)) };
}

function documentOf(name: string, text: string, value: unknown, path: readonly number[], done: number): Document {
  const placeOf = async (field: string) => {
    const line = await lineOf(text, [...path, ...field.split('.').filter((part) => part !== '')]);
    return line === undefined ? name : `${name}:${line}`;
  };
  return { value, done, placeOf, located: (error) => locate(error, placeOf) };
}

/** The values of JSON lines; empty lines are skipped. */
async function* linesOf(
  chunks: AsyncIterable<Buffer> | Iterable<string>,
  name: string,
  size: number | undefined,
): AsyncGenerator<Document> {
  const { createInterface } = await import('node:readline');
  const { Readable } = await import('node:stream');
  let number = 0;
  let read = 0;
  for await (const line of createInterface({ input: Readable.from(chunks), crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    read += Buffer.byteLength(line) + 1;
    const text = line.replace(/^\uFEFF/, '').trim();
    const lineNumber = number;
    if (text === '') continue;
    const placeOf = async () => `${name}:${lineNumber}`;
    const done = size === undefined ? undefined : Math.min(1, read / size);
    yield { ...parsed(text, name, number), done, placeOf, located: (error) => locate(error, placeOf) };
  }
}

/** Whether a text is JSON lines: its first line is complete JSON, and more lines follow. */
function isLines(text: string): boolean {
  const [first, ...rest] = text.split('\n').filter((line) => line.trim() !== '');
  try {
    JSON.parse(first ?? '');
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
    return JSON.parse(text);
  } catch {
    const { line: inside, column, expected } = jsonFault(text);
    throw new CliError(`${name}:${line ?? inside}:${column}: invalid JSON, expected ${expected}.`);
  }
}

async function parseYaml(text: string, name: string): Promise<unknown[]> {
  const { parseAllDocuments } = await import('yaml');
  return [...parseAllDocuments(text)].map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) {
      const [{ line, col } = { line: 1, col: 1 }] = fault.linePos ?? [];
      throw new CliError(`${name}:${line}:${col}: invalid YAML, ${fault.message.split(' at line ')[0]}.`);
    }
    return document.toJS();
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

async function locate(error: unknown, placeOf: Document['placeOf']): Promise<unknown> {
  if (!(error instanceof ApiError) || error.field === null) return error;
  const faults = error.errors.length > 0 ? error.errors : [{ field: error.field, detail: error.message }];
  const lines = await Promise.all(faults.map(async ({ field, detail }) => `${await placeOf(field)}: ${named(field, detail)}`));
  return new CliError(lines.join('\n'), 1);
}

/** The error with the name of its field, unless it contains that already. */
export function named(field: string | null, detail: string): string {
  return field === null || detail.includes(field) ? detail : `${field}: ${detail}`;
}
