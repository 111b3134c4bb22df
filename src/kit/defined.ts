/** The fields that are not undefined, in their order. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const found: Partial<T> = {};
  for (const name in fields) if (fields[name] !== undefined) found[name] = fields[name];
  return found as never;
}
