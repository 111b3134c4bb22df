/** The time of an escaped character, in copied characters. */
const costOfEscape = 16;

/** The time of an escape of half a surrogate pair. */
const costOfHalfPair = 128;

/** The time to find, sort and print a property without the characters of its name. */
const costOfProperty = 160;

/** The time of a value without its characters and properties. */
const costOfValue = 80;

/**
 * JSON in the canonical form of RFC 8785. Two JSON values are equal if and only if these texts are. Half a surrogate pair, which the RFC
 * refuses, is escaped and `undefined` left out of an object, as `JSON.stringify` does.
 * @param spend called before each step with its cost, in units of the time that copying a character takes (about 1 ns); may throw
 */
export function canonicalJson(value: unknown, spend: (cost: number) => void = () => undefined): string {
  const parts: string[] = [];
  const print = (part: unknown): void => {
    spend(costOfValue);
    if (typeof part === 'string') parts.push(quoted(part, spend));
    // The properties and minus zero of ECMAScript's numbers are those of the RFC.
    else if (typeof part !== 'object' || part === null) parts.push(JSON.stringify(part));
    else if (Array.isArray(part)) printAll('[', part, ']', print);
    else printObject(part as Record<string, unknown>);
  };
  const printAll = (open: string, items: readonly unknown[], close: string, printItem: (item: never) => void): void => {
    parts.push(open);
    for (const [index, item] of items.entries()) {
      if (index > 0) parts.push(',');
      printItem(item as never);
    }
    parts.push(close);
  };
  const printObject = (object: Record<string, unknown>): void => {
    const names = Object.keys(object).filter((name) => object[name] !== undefined);
    spend(names.length * costOfProperty);
    // The default order of strings is that of their UTF-16 code units, as the RFC wants it.
    names.sort();
    printAll('{', names, '}', (name: string) => {
      parts.push(quoted(name, spend), ':');
      print(object[name]);
    });
  };
  print(value);
  return parts.join('');
}

/** Finds a control character, a quotation mark or a backslash. */
const isEscaped = /[^ !#-[\]-\uffff]/;

/** The JSON of a text. */
function quoted(text: string, spend: (cost: number) => void): string {
  // It is read twice to learn what the printer does, and printed.
  spend(3 * text.length);
  if (!text.isWellFormed()) spend(costOfHalfPair * text.length);
  else if (isEscaped.test(text)) spend(costOfEscape * text.length);
  return JSON.stringify(text);
}
