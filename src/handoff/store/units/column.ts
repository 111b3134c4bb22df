/** A text as a column keeps it: well-formed, since half a surrogate pair has no UTF-8. */
export function column(text: string): string {
  return text.toWellFormed();
}
