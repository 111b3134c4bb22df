/**
 * Finds the first syntax error in invalid JSON (RFC 8259): its line and column, and what is expected there.
 * `JSON.parse` does not always report them.
 */
export function jsonFault(text: string): { line: number; column: number; expected: string } {
  const at = firstFault(text);
  const before = text.slice(0, at.index);
  return { line: before.split('\n').length, column: at.index - before.lastIndexOf('\n'), expected: at.expected };
}

const quoted = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const plain = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

class Fault {
  readonly index: number;
  readonly expected: string;
  constructor(index: number, expected: string) {
    this.index = index;
    this.expected = expected;
  }
}

function firstFault(source: string): Fault {
  let index = 0;
  const fail = (expected: string): never => {
    throw new Fault(index, expected);
  };
  const space = () => {
    while (/[ \t\r\n]/.test(source[index] ?? '')) index += 1;
  };
  const take = (pattern: RegExp, expected: string) => {
    pattern.lastIndex = index;
    const found = pattern.exec(source)?.[0] ?? fail(expected);
    index += found.length;
  };
  const list = (end: string, item: () => void) => {
    index += 1;
    space();
    for (let first = true; source[index] !== end; first = false) {
      if (!first) {
        if (source[index] !== ',') fail(`"," or "${end}"`);
        index += 1;
        space();
      }
      item();
      space();
    }
    index += 1;
  };
  const value = (): void => {
    space();
    if (source[index] === '[') list(']', value);
    else if (source[index] === '{') list('}', member);
    else take(source[index] === '"' ? quoted : plain, 'a value');
  };
  const member = () => {
    take(quoted, 'a name in double quotes');
    space();
    if (source[index] !== ':') fail('":"');
    index += 1;
    value();
  };
  try {
    value();
    space();
    return new Fault(index, 'the end');
  } catch (fault) {
    if (fault instanceof Fault) return fault;
    throw fault;
  }
}
