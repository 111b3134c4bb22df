/** A text as it is stored in a column: well-formed, since a lone surrogate can't be encoded in UTF-8. */
export function storable(text: string): string {
  return text.toWellFormed();
}
