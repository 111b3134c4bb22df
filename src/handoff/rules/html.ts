const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A text of a packet without control characters, and without those that would reorder the text around it. */
export function plain(text: string): string {
  return text.toWellFormed().replace(/[\u202a-\u202e\u2066-\u2069]|(?![\n\t])\p{Cc}/gu, '');
}

/** A text of a packet as HTML. */
export function escapeHtml(text: string): string {
  return plain(text.replace(/[&<>"']/g, (character) => entities[character]!));
}
