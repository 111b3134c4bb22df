import { isUtf8 } from 'node:buffer';

import { ServiceError } from '../errors.ts';
import { countColons, hasEscapedName, readByHand, respellNames } from '../json.ts';

/** The deepest nesting allowed. Real documents are far flatter, and all later steps recurse over the value. */
export const maxDepth = 64;

/** The most values in a body: parsing millions of tiny ones would block all other requests. */
export const maxValues = 250_000;

/** The most property names in a body. A name costs more to parse than a value. */
export const maxNames = 100_000;

/**
 * The most different property names in a body; a name with an escape sequence counts each time it occurs. A new name
 * takes about 3 µs to parse, a hundred times as long as a repeated one. Real bodies have less than a hundred.
 */
export const maxDifferentNames = 5_000;

/** The most values in a body with names that need an escape sequence, which takes the slow parser. */
export const maxValuesByHand = 5_000;

/** Bodies below this many bytes can't hold enough names or values to matter. */
const countFrom = 32 * 1024;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const openBrace = 0x7b;

const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Parses a JSON body (RFC 8259).
 * @throws ServiceError 400 for invalid UTF-8, invalid JSON, nesting beyond 64, a duplicate name in an object (it is
 * unclear which is meant), names of JavaScript's prototypes, numbers beyond the range of a double (they would be
 * returned as null), and more than 250,000 values, 100,000 names or 5,000 different names
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw refused('The body is not valid UTF-8.');
  if (bytes.length > countFrom) {
    const { values, names, different } = count(bytes);
    if (values > maxValues) throw refused(`The body has more than ${maxValues} values.`);
    if (names > maxNames) throw refused(`The body has more than ${maxNames} names.`);
    if (different > maxDifferentNames)
      throw refused(`The body has more than ${maxDifferentNames} different names; a list of objects with the same names has fewer.`);
  }
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refused(`The body is not valid JSON${whereIn(error)}.`);
  }
  let plain = text;
  if (hasEscapedName(text)) {
    // Checks the nesting first, because the slow parser recurses without a limit.
    inspect(value);
    const respelled = respellNames(text);
    if (!respelled.isPlain) {
      if (count(bytes).values > maxValuesByHand)
        throw refused(
          `A body with quotation marks, backslashes or control characters in names may have at most ${maxValuesByHand} values.`,
        );
      value = readByHand(text, refuseDuplicate);
      inspect(value);
      return value;
    }
    plain = respelled.text;
    value = JSON.parse(plain);
  }
  // Each property has a colon, so there can only be a duplicate if there are more colons than properties.
  if (countColons(plain) !== inspect(value)) readByHand(plain, refuseDuplicate);
  return value;
}

/**
 * Estimates the numbers of values and names in a JSON text by its commas, opening brackets and colons outside strings.
 * Stops as soon as a number is too high.
 */
function count(bytes: Buffer): { values: number; names: number; different: number } {
  let values = 0;
  let names = 0;
  let escapedNames = 0;
  const spelled = new Set<string>();
  // The last string.
  let start = 0;
  let end = 0;
  for (let index = 0; index < bytes.length && values <= maxValues && spelled.size + escapedNames <= maxDifferentNames; index += 1) {
    const byte = bytes[index];
    if (byte === quote) {
      start = index + 1;
      end = endOfString(bytes, start);
      index = end;
    } else if (byte === comma || byte === openBrace || byte === openBracket) values += 1;
    else if (byte === colon) {
      names += 1;
      if (names > maxNames) break;
      const name = bytes.toString('latin1', start, end);
      if (name.includes('\\')) escapedNames += 1;
      else spelled.add(name);
    }
  }
  return { values, names, different: spelled.size + escapedNames };
}

/** How many bytes of a string are read before its end is searched for, which begins slowly and goes on fast. */
const searchAfter = 32;

/** The index of the quotation mark that ends the string whose text begins at `start`; the length of the bytes if none does. */
function endOfString(bytes: Buffer, start: number): number {
  let index = start;
  for (;;) {
    for (const far = Math.min(index + searchAfter, bytes.length); index < far; index += bytes[index] === backslash ? 2 : 1)
      if (bytes[index] === quote) return index;
    const found = bytes.indexOf(quote, index);
    if (found === -1) return bytes.length;
    let slashes = 0;
    while (found - slashes > index && bytes[found - slashes - 1] === backslash) slashes += 1;
    if (slashes % 2 === 0) return found;
    index = found + 1;
  }
}

function refused(detail: string, field: string | null = null): ServiceError {
  return new ServiceError('VALIDATION_ERROR', detail, { field });
}

/** The position that the parser named, as the end of a sentence. The rest of its message is dropped, since it may quote the body. */
function whereIn(error: unknown): string {
  const [, line, column] = /at position \d+ \(line (\d+) column (\d+)\)/.exec((error as Error).message) ?? [];
  return line === undefined ? '' : ` at line ${line}, column ${column}`;
}

/** Counts the properties of all objects in the value. Refuses deep nesting, too large numbers and names of prototypes. */
function inspect(value: unknown): number {
  let members = 0;
  const path: (string | number)[] = [];
  const visit = (node: unknown, at: string | number): void => {
    if (typeof node === 'number' && !Number.isFinite(node))
      throw refused('A number is too large.', [...path.slice(1), at].join('.') || null);
    if (typeof node !== 'object' || node === null) return;
    if (path.length >= maxDepth) throw refused(`The body is nested deeper than ${maxDepth} levels.`);
    path.push(at);
    if (Array.isArray(node)) {
      for (let index = 0; index < node.length; index += 1) visit(node[index], index);
    } else {
      for (const key in node) {
        members += 1;
        if (forbiddenKeys.has(key)) throw refused(`A field may not be named "${key}".`, [...path.slice(1), key].join('.'));
        visit((node as Record<string, unknown>)[key], key);
      }
    }
    path.pop();
  };
  visit(value, '');
  return members;
}

function refuseDuplicate(path: readonly (string | number)[]): never {
  throw refused(`The field "${path.at(-1)}" appears twice.`, path.join('.'));
}
