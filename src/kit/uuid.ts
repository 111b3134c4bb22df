const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text is a UUID in the form this service uses: lower case, with hyphens. */
export function isId(text: string): boolean {
  return uuid.test(text);
}
