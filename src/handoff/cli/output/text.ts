/** Characters that take two columns of a terminal. */
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
/** Combining marks, which take no column. */
const none = /\p{Mn}|\p{Me}/u;

const widthOf = (character: string) => (none.test(character) ? 0 : wide.test(character) ? 2 : 1);

/** The text on one line: each run of white space and unprintable characters becomes a space. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ').trim();
}

/** The number of columns that a text takes on a terminal. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

/** The text in at most `width` columns, with an ellipsis if it was cut. */
export function cut(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let shown = '';
  let used = 1;
  for (const character of text) {
    used += widthOf(character);
    if (used > width) break;
    shown += character;
  }
  return width < 1 ? '' : `${shown.trimEnd()}…`;
}

const codes = { red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof codes;

/** The text in a colour of the terminal. */
export function coloured(text: string, colour: Colour | undefined): string {
  return colour === undefined ? text : `\x1b[${codes[colour]}m${text}\x1b[0m`;
}
