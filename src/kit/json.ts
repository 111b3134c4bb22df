/** Whether an object in the text, which is valid JSON, has a name that is spelled with an escape. */
export function hasEscapedName(text: string): boolean {
  for (let index = text.indexOf('\\'); index !== -1; index = text.indexOf('\\', index)) {
    index = endOfString(text, index + 1);
    while (text.charCodeAt(index) <= 0x20) index += 1;
    if (text.charCodeAt(index) === 0x3a) return true;
  }
  return false;
}

/**
 * The value of a JSON text, as JSON.parse ought to give it. V8 13.6 (Node 24) misreads a name that is spelled with an
 * escape: where it has met an object of the same shape with a backslash in that name's place, it compares the name
 * unescaped with the other one's and may give that one instead. What one caller sent would so change what another
 * one's packet says. Such names, which are rare, are therefore respelled first.
 * The text must not be nested deeper than a call stack reaches.
 * @throws SyntaxError as JSON.parse does
 */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!hasEscapedName(text)) return value;
  const respelled = respellNames(text);
  return respelled.isPlain ? (JSON.parse(respelled.text) as unknown) : readByHand(respelled.text);
}

/**
 * The text, which is valid JSON, with its names spelled without escapes; `isPlain`: none is left. A name with a quotation
 * mark, a backslash, a control character or half a surrogate pair needs its escape.
 */
export function respellNames(text: string): { text: string; isPlain: boolean } {
  const parts: string[] = [];
  let from = 0;
  let isPlain = true;
  for (let index = text.indexOf('\\'); index !== -1; index = text.indexOf('\\', index)) {
    // It is the first escape of its string, so the last quotation mark before it opens that.
    const start = text.lastIndexOf('"', index);
    const end = endOfString(text, start);
    index = end;
    while (text.charCodeAt(index) <= 0x20) index += 1;
    if (text.charCodeAt(index) !== 0x3a) continue;
    const spelled = JSON.stringify(JSON.parse(text.slice(start, end)));
    if (spelled.includes('\\')) isPlain = false;
    parts.push(text.slice(from, start), spelled);
    from = end;
  }
  parts.push(text.slice(from));
  return { text: parts.join(''), isPlain };
}

/** The value of a text that is known to be valid JSON; it takes some ten times as long as JSON.parse. */
export function readByHand(text: string): unknown {
  let index = 0;

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
    for (pass('['); text[index] !== ']'; pass(',')) items.push(value());
    pass(']');
    return items;
  };
  const object = (): unknown => {
    const members: [string, unknown][] = [];
    for (pass('{'); text[index] !== '}'; pass(',')) {
      const name = string();
      pass();
      pass(':');
      members.push([name, value()]);
    }
    pass('}');
    // As JSON.parse does, this makes `__proto__` a member like any other.
    return Object.fromEntries(members);
  };
  const scalar = (): unknown => {
    const start = index;
    while (index < text.length && !/[\s,\]}]/.test(text[index]!)) index += 1;
    return JSON.parse(text.slice(start, index));
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
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  for (;;) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
}
