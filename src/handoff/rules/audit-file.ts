import type { AuditEntry } from '../model/audit.ts';

const columns = ['timestamp', 'action', 'resource', 'packet_id', 'actor', 'key_id', 'details', 'id'] as const;

/** A cell of a CSV file (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe before it. */
function cellOf(value: unknown): string {
  const text = typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The entries of an audit log as a CSV file with a header. It begins with a byte order mark, without which spreadsheets read it as Latin-1. */
export const csvOf = (entries: readonly AuditEntry[]): string => csvHead + csvRowsOf(entries);

/** The beginning of such a file. */
export const csvHead = `\uFEFF${columns.join(',')}\r\n`;

/** The rows of these entries, each with its line break. */
export const csvRowsOf = (entries: readonly AuditEntry[]): string =>
  entries.map((entry) => `${columns.map((name) => cellOf(entry[name])).join(',')}\r\n`).join('');

/** The entries of an audit log as JSON Lines. */
export const jsonLinesOf = (entries: readonly AuditEntry[]): string => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
