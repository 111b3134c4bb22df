/** The items of a comma-separated list, without spaces around them and without empty ones. */
export const commaList = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
