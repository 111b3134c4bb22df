/** A text as it is stored in a column: well-formed, since a lone surrogate can't be encoded in UTF-8. */
export function storable(text: string): string {
  return text.toWellFormed();
}

/** Constants of the program as a list of SQL literals, for conditions that must be spelled as in a partial index. */
export function quoted(constants: readonly string[]): string {
  return constants.map((constant) => `'${constant}'`).join(', ');
}

/** The condition that a column has one of these constants, spelled as in the conditions of partial indexes. */
export const oneOf = (column: string, constants: readonly string[]): string =>
  `(${constants.map((constant) => `${column} = ${quoted([constant])}`).join(' or ')})`;
