/** The items of a comma-separated list, without spaces around them and without empty ones. */
export const commaList = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/**
 * The items of a comma-separated list in which an item may stand in quotation marks, as in CSV (RFC 4180): `"a, b",c` has two. A
 * quotation mark within them is doubled.
 */
export const quotedList = (text: string): string[] =>
  [...text.matchAll(/(?:^|,)\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))/g)]
    .map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain.trim())
    .filter((item) => item !== '');

/** The items as one text, which `quotedList` reads. */
export const quotedListOf = (items: readonly unknown[]): string =>
  items
    .map(String)
    .map((item) => (/[",]|^\s|\s$/.test(item) ? `"${item.replaceAll('"', '""')}"` : item))
    .join(',');
