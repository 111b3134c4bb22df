/**
 * The value of a JSON text, without a bug of JSON.parse in V8 13.6 (Node 24): for a property name with an escape
 * sequence it may return the name of another object that it parsed before, if both have the same shape. One caller's
 * input could then change another caller's data. Such names are rare, and are rewritten without escapes first.
 * The text must not be nested more deeply than the call stack allows.
 * @throws SyntaxError as JSON.parse does
 */
export function readJson<T = unknown>(text: string): T {
  const value: T = JSON.parse(text);
  if (!hasEscapedName(text)) return value;
  const respelled = respellNames(text);
  return (respelled.isPlain ? JSON.parse(respelled.text) : readByHand(respelled.text)) as T;
}

/** Whether a value is an object with members, neither an array nor null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Thrown for valid JSON that programs read differently: the path of the value, and what is wrong with it as the end of a sentence. */
export class UnclearJson extends Error {
  readonly path: readonly (string | number)[];

  constructor(path: readonly (string | number)[], fault: string) {
    super(`${path.join('.') || 'The value'} ${fault}`);
    this.path = path;
  }
}

/**
 * The value of a JSON text, in which each name of an object occurs once and each number is one that a double can hold.
 * @throws SyntaxError as JSON.parse does; UnclearJson
 */
export function readClearJson(text: string): unknown {
  const value = readJson(text);
  requireFinite(value);
  // Each property has a colon, so there can only be a duplicate if there are more colons than properties.
  if (countColons(respellNames(text).text) !== countProperties(value))
    readByHand(text, (path) => {
      throw new UnclearJson(path, 'appears twice');
    });
  return value;
}

/** Requires that each number of a value is one that JSON has. @throws UnclearJson */
export function requireFinite(value: unknown, path: readonly (string | number)[] = []): void {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new UnclearJson(path, 'is a number that is too large');
  if (typeof value !== 'object' || value === null) return;
  for (const [name, item] of Object.entries(value)) requireFinite(item, [...path, name]);
}

function countProperties(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const items = Object.values(value);
  return items.reduce((sum: number, item) => sum + countProperties(item), Array.isArray(value) ? 0 : items.length);
}

/**
 * An upper bound for the number of properties in a valid JSON text whose names have no escape sequence: its colons
 * after a quote that is not escaped.
 */
export function countColons(text: string): number {
  let colons = 0;
  for (let index = text.indexOf(':'); index !== -1; index = text.indexOf(':', index + 1)) {
    let before = index - 1;
    while (text.charCodeAt(before) <= 0x20) before -= 1;
    if (text.charCodeAt(before) === 0x22 && text.charCodeAt(before - 1) !== 0x5c) colons += 1;
  }
  return colons;
}

/** The start and end of the next property name with an escape sequence, in a text that is valid JSON. */
function nextEscapedName(text: string, from: number): { start: number; end: number } | undefined {
  for (let index = text.indexOf('\\', from); index !== -1; index = text.indexOf('\\', index)) {
    const backslash = index;
    index = endOfString(text, index + 1);
    // This is the first escape of its string, so the last quotation mark before it opens the string.
    if (isNameEnd(text, index)) return { start: text.lastIndexOf('"', backslash), end: index };
  }
  return undefined;
}

/** Whether a property name in the text, which is valid JSON, contains an escape sequence. */
export const hasEscapedName = (text: string): boolean => nextEscapedName(text, 0) !== undefined;

/**
 * Rewrites the property names of the text, which is valid JSON, without escape sequences; `isPlain` says that none is
 * left. A name with a quotation mark, a backslash, a control character or a lone surrogate needs its escape.
 */
export function respellNames(text: string): { text: string; isPlain: boolean } {
  const parts: string[] = [];
  let from = 0;
  let isPlain = true;
  for (let name = nextEscapedName(text, 0); name !== undefined; name = nextEscapedName(text, from)) {
    const spelled = JSON.stringify(JSON.parse(text.slice(name.start, name.end)));
    if (spelled.includes('\\')) isPlain = false;
    parts.push(text.slice(from, name.start), spelled);
    from = name.end;
  }
  parts.push(text.slice(from));
  return { text: parts.join(''), isPlain };
}

/**
 * Parses a text that is known to be valid JSON, about ten times as slowly as JSON.parse.
 * @param onDuplicate called with the path of each property whose object has one of its name already
 */
export function readByHand(text: string, onDuplicate: (path: readonly (string | number)[]) => void = () => undefined): unknown {
  let index = 0;
  const path: (string | number)[] = [];

  const pass = (character = ''): void => {
    if (text[index] === character) index += 1;
    while (text.charCodeAt(index) <= 0x20) index += 1;
  };
  const string = (): string => {
    const start = index;
    index = endOfString(text, start);
    return JSON.parse(text.slice(start, index)) as string;
  };
  const array = (): unknown[] => {
    const items: unknown[] = [];
    for (pass('['); text[index] !== ']'; pass(',')) items.push(valueAt(items.length));
    pass(']');
    return items;
  };
  const object = (): unknown => {
    const members = new Map<string, unknown>();
    for (pass('{'); text[index] !== '}'; pass(',')) {
      const name = string();
      pass();
      pass(':');
      if (members.has(name)) onDuplicate([...path, name]);
      members.set(name, valueAt(name));
    }
    pass('}');
    // Like JSON.parse, this makes `__proto__` an ordinary property.
    return Object.fromEntries(members);
  };
  const scalar = (): unknown => {
    const start = index;
    while (index < text.length && !/[\s,\]}]/.test(text[index]!)) index += 1;
    return JSON.parse(text.slice(start, index));
  };
  const valueAt = (step: string | number): unknown => {
    path.push(step);
    const read = value();
    path.pop();
    return read;
  };
  const value = (): unknown => {
    pass();
    const first = text[index];
    const read = first === '{' ? object() : first === '[' ? array() : first === '"' ? string() : scalar();
    pass();
    return read;
  };
  return value();
}

/** How many characters of a string are read before its end is searched for, which begins slowly and goes on fast. */
const searchAfter = 32;

/** The index after the string that begins at `start`, in a text that is valid JSON. */
function endOfString(text: string, start: number): number {
  let index = start + 1;
  for (;;) {
    for (const far = index + searchAfter; index < far; index += text.charCodeAt(index) === 0x5c ? 2 : 1)
      if (text.charCodeAt(index) === 0x22) return index + 1;
    const end = text.indexOf('"', index);
    let slashes = 0;
    while (end - slashes > index && text.charCodeAt(end - slashes - 1) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    index = end + 1;
  }
}

/** Whether the string that ends before `end`, in a text that is valid JSON, is a property name. */
function isNameEnd(text: string, end: number): boolean {
  let after = end;
  while (text.charCodeAt(after) <= 0x20) after += 1;
  return text.charCodeAt(after) === 0x3a;
}
