import { beginningOf } from '../../kit/wording.ts';

/** The text in at most `length` characters, with an ellipsis if it was cut. */
export const cut = (text: string, length: number): string => (text.length > length ? `${beginningOf(text, length - 1)}…` : text);
