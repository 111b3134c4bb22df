import type { Answer, ItemOf } from '../../../kit/client.ts';
import type { Context } from '../context.ts';
import { type Column, tableLines } from './table.ts';
import type { Line } from './writer.ts';

/** Writes the answer to a command. */
export type Show<Body> = (context: Context, answer: Answer<Body>, options: { readonly offset?: number; readonly full?: boolean }) => void;

/**
 * Shows a list as a table, or with --quiet as ids only; then says how to get the next page, if there is one.
 * @param noun the plural of the items. As JSON, a bare list becomes an object with its items under this name.
 * @param options.id the field that --quiet shows
 */
export function list<Body>(
  columns: readonly Column<ItemOf<Body>>[],
  noun: string,
  { none = `No ${noun}.`, id = 'id' as keyof ItemOf<Body> } = {},
): Show<Body> {
  return (context, answer, { offset = 0 }) => {
    const { body, headers, text } = answer;
    // Without a list it is not the answer of a handoff service: the next line throws, and `reading` says so.
    const items: ItemOf<Body>[] = Array.isArray(body) ? body : Object.values(body as object).find(Array.isArray)!;
    const total = Number((body as { total?: number }).total ?? headers['x-total-count'] ?? items.length);
    const name = noun.replace(/.* /, '');
    if (context.format === 'json') context.out.json(Array.isArray(body) ? `{"${name}":${text.trim()},"total":${total}}` : text);
    else if (context.quiet) for (const item of items) context.out.line(String(item[id]));
    else if (items.length === 0) context.say(none);
    else for (const line of tableLines(columns, items, context.out.columns)) context.out.line(line);
    const next = offset + items.length;
    if (context.format === 'json' || items.length === 0 || next >= total) return;
    context.say(`${offset + 1} to ${next} of ${total} ${noun}; add --offset ${next} for the next page.`);
  };
}

/** Shows one resource as lines, or with --quiet as its id only. */
export function one<Body extends { id: string }>(lines: (body: Body) => readonly string[]): Show<Body> {
  return shown((body, { quiet }) => (quiet ? [body.id] : lines(body)));
}

/** Shows an answer as JSON, or as the lines made of it. */
export function shown<Body>(lines: (body: Body, context: Context) => readonly Line[]): Show<Body> {
  return (context, { text, body }) => {
    if (context.format !== 'json') for (const line of lines(body, context)) context.out.line(line);
    else if (text !== '') context.out.json(text);
  };
}

/** Says that it is done; as JSON it shows the answer, if there is one. */
export function done(sentence: string): Show<unknown> {
  return (context, { text }) => {
    if (context.format === 'json' && text !== '') context.out.json(text);
    else context.say(sentence);
  };
}

/** Shows an answer as its JSON. */
export const json = shown((body: unknown) => JSON.stringify(body, null, 2).split('\n'));
