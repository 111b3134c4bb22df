/** The text in at most `length` characters, with an ellipsis if it was cut. */
export const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text);
