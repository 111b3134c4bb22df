/**
 * The value of a JSON text, without a bug of JSON.parse in V8 13.6 (Node 24): for a property name with an escape
 * sequence it may return the name of another object that it parsed before, if both have the same shape. One caller's
 * input could then change another caller's packet. Such names are rare, and are rewritten without escapes first.
 * The text must not be nested more deeply than the call stack allows.
 * @throws SyntaxError as JSON.parse does
 */
export function readJson<T = unknown>(text: string): T {
  const value: T = JSON.parse(text);
  if (!hasEscapedName(text)) return value;
  const respelled = respellNames(text);
  return (respelled.isPlain ? JSON.parse(respelled.text) : readByHand(respelled.text)) as T;
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

/** The index after the string that begins at `start`, in a text that is valid JSON. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  for (;;) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
}

/** Whether the string that ends before `end`, in a text that is valid JSON, is a property name. */
function isNameEnd(text: string, end: number): boolean {
  let after = end;
  while (text.charCodeAt(after) <= 0x20) after += 1;
  return text.charCodeAt(after) === 0x3a;
}
