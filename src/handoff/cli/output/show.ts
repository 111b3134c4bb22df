import type { Answer } from '../../../kit/client.ts';
import type { Context } from '../context.ts';
import { type Column, tableLines } from './table.ts';

/** Writes the server's JSON, unchanged, or indented on a terminal. */
export function showJson({ print, terminal }: Context, { text, body }: Pick<Answer<unknown>, 'text' | 'body'>): void {
  if (text !== '') print(terminal.stdout.isTTY ? JSON.stringify(body, null, 2) : text.trimEnd());
}

/** Writes a list as JSON, as a table, or with --quiet as ids only. */
export function showList<Body, Row extends { id: string }>(
  context: Context,
  answer: Answer<Body>,
  rows: readonly Row[],
  { columns, none }: { columns: readonly Column<Row>[]; none: string },
): void {
  if (context.format === 'json') showJson(context, answer);
  else if (context.quiet) for (const { id } of rows) context.print(id);
  else if (rows.length === 0) context.say(none);
  else for (const line of tableLines(columns, rows, context.terminal)) context.print(line);
}

/** Says how to get the next page, if there is one. */
export function sayNextPage(
  context: Context,
  shown: number,
  { total, offset, noun }: { total: number; offset: number; noun: string },
): void {
  const next = offset + shown;
  if (context.format === 'json' || shown === 0 || next >= total) return;
  context.say(`${offset + 1} to ${next} of ${total} ${noun}; add --offset ${next} for the next page.`);
}

/** Writes a resource as JSON, as lines, or with --quiet as its id only. */
export function showOne<Body extends { id: string }>(
  context: Context,
  answer: Answer<Body>,
  lines: (body: Body) => readonly string[],
): void {
  if (context.format === 'json') showJson(context, answer);
  else for (const line of context.quiet ? [answer.body.id] : lines(answer.body)) context.print(line);
}
