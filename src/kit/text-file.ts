import { readFileSync } from 'node:fs';

/** What a text is not when its bytes are in another encoding, whose characters would be lost. */
export const notUtf8 = 'not in UTF-8; save it in this encoding';

/** A decoder of UTF-8 that throws at other bytes, and leaves out a byte order mark. */
export const strictDecoder = () => new TextDecoder('utf-8', { fatal: true });

/** The text of a file of a user. @throws Error with the reason why it can't be read */
export function readText(path: string): string {
  const bytes = readFileSync(path);
  try {
    return strictDecoder().decode(bytes);
  } catch {
    throw new Error(`it is ${notUtf8}`);
  }
}
