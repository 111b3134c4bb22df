/**
 * Header values as `fetch` and Node send them: each byte of their UTF-8 is one character, since both would send Latin-1.
 * @throws TypeError for line breaks and other control characters, without the value, which may be secret
 */
export function encodedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, encoded(name, value)]));
}

function encoded(name: string, value: string): string {
  if (/^[\t -~]*$/.test(value)) return value;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(value)) throw new TypeError(`${name} can't have line breaks or other control characters.`);
  return String.fromCharCode(...new TextEncoder().encode(value));
}

/**
 * The header of an API key, without the line break of the file that the key was read from; none without a key.
 * @throws TypeError, without the key, when it can't be sent in a header
 */
export function keyHeader(apiKey: string | undefined): Record<string, string> {
  if (apiKey === undefined) return {};
  const key = apiKey.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError('The API key must be visible ASCII characters without spaces.');
  return { 'x-api-key': key };
}
