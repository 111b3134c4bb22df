import { isUtf8 } from 'node:buffer';

import { ServiceError } from '../errors.ts';

/** Deeper nesting than this is refused: no agent's document is, and every later step would have to bear it. */
export const maxDepth = 64;

const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * The value of a JSON body (RFC 8259). Refused with 400 are invalid UTF-8, broken JSON, nesting beyond 64, a name that
 * appears twice in one object (which of the two is meant, no one can say), and names that belong to JavaScript's prototypes.
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw refused('The body is not valid UTF-8.');
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refused(`The body is not valid JSON${whereIn(error)}.`);
  }
  const members = inspect(value);
  if (countMembers(text) !== members) throw duplicateIn(text);
  return value;
}

function refused(detail: string, field: string | null = null): ServiceError {
  return new ServiceError('VALIDATION_ERROR', detail, { field });
}

/** The place that the parser named; its message may quote the body, so nothing else of it is passed on. */
function whereIn(error: unknown): string {
  const place = /at position \d+( \(line \d+ column \d+\))?/.exec((error as Error).message);
  return place === null ? '' : ` (${place[0]})`;
}

/** Counts the members of all objects in the value, and refuses what is too deep or named like a prototype. */
function inspect(value: unknown): number {
  let members = 0;
  const visit = (node: unknown, path: string, depth: number): void => {
    if (typeof node !== 'object' || node === null) return;
    if (depth >= maxDepth) throw refused(`The body is nested deeper than ${maxDepth} levels.`);
    if (Array.isArray(node)) {
      for (let index = 0; index < node.length; index += 1) {
        const item: unknown = node[index];
        if (typeof item === 'object' && item !== null) visit(item, path, depth + 1);
      }
      return;
    }
    for (const key of Object.keys(node)) {
      members += 1;
      if (forbiddenKeys.has(key)) throw refused(`A field may not be named "${key}".`, path === '' ? key : `${path}.${key}`);
      const item = (node as Record<string, unknown>)[key];
      if (typeof item === 'object' && item !== null) visit(item, path === '' ? key : `${path}.${key}`, depth + 1);
    }
  };
  visit(value, '', 0);
  return members;
}

/** How many members the text of a valid JSON document spells out: its colons outside strings. */
function countMembers(text: string): number {
  let count = 0;
  for (let index = text.indexOf('"'); index !== -1; index = text.indexOf('"', index)) {
    index = endOfString(text, index);
    let after = index;
    while (text.charCodeAt(after) <= 0x20) after += 1;
    if (text.charCodeAt(after) === 0x3a) count += 1;
  }
  return count;
}

/** The index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  for (;;) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
}

/** Names the first member that appears twice. Only for a document known to have one. */
function duplicateIn(text: string): ServiceError {
  const open: { seen: Set<string>; key: string }[] = [];
  let index = 0;
  while (index < text.length) {
    const character = text[index];
    if (character === '{') open.push({ seen: new Set(), key: '' });
    else if (character === '[') open.push({ seen: new Set(), key: '*' });
    else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      const end = endOfString(text, index);
      const key: string = JSON.parse(text.slice(index, end));
      let after = end;
      while (text.charCodeAt(after) <= 0x20) after += 1;
      if (text[after] === ':') {
        const object = open.at(-1)!;
        object.key = key;
        if (object.seen.has(key)) {
          const path = open.map((level) => level.key).filter((name) => name !== '*').join('.');
          return refused(`The field "${key}" appears twice.`, path);
        }
        object.seen.add(key);
      }
      index = end - 1;
    }
    index += 1;
  }
  return refused('A field appears twice.');
}
