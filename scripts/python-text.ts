// Names and docstrings of the Python client.

/** The longest line of a docstring. */
export const width = 100;

/** The words that Python 3.10 to 3.14 take for no name: `keyword.kwlist`. */
const keywords = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global ' +
    'if import in is lambda nonlocal not or pass raise return try while with yield'
  ).split(' '),
);
/** Whether Python takes a text for a name, so that a class can have a member with it. */
export const isName = (text: string): boolean => /^[A-Za-z_]\w*$/.test(text) && !keywords.has(text);
/** A name of the API as Python writes it; after one that is a keyword stands `_`, as PEP 8 says: `from_`. */
export function snake(name: string): string {
  const words = name
    .replace(/^X-/, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()
    .replace(/^a2_a/, 'a2a');
  return keywords.has(words) ? `${words}_` : words;
}
/** A name as that of a class. */
export const pascal = (name: string): string =>
  name.replace(/(^|[^A-Za-z0-9]+)([a-zA-Z0-9])/g, (_, __, letter: string) => letter.toUpperCase());
/** The lines, indented. */
export const indent = (lines: readonly string[], by = 4): string[] => lines.map((line) => (line === '' ? '' : ' '.repeat(by) + line));
/** A text in quotes: in single ones, as its formatter has it, if it has double ones itself. */
export const literal = (value: string): string => (/^[^'\\]*"[^'\\]*$/.test(value) ? `'${value}'` : JSON.stringify(value));

/** The text in lines of at most the width; the lines after the first are indented by two spaces if `hangs`. */
export function wrapped(text: string, columns: number, hangs = false): string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [''];
    for (const word of paragraph.replaceAll('\\', '\\\\').split(' ')) {
      const line = lines.at(-1)!;
      if (line !== '' && line.length + word.length >= columns) lines.push(hangs ? `  ${word}` : word);
      else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
    }
    return lines;
  });
}

/** A docstring: the text, and further lines. */
export function docstring(text: string, columns: number, more: readonly string[] = []): string[] {
  const lines = wrapped(text, columns - 6);
  return lines.length === 1 && more.length === 0 ? [`"""${lines[0]}"""`] : [`"""${lines[0]}`, ...lines.slice(1), ...more, '"""'];
}
