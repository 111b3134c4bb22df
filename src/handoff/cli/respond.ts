import type { Packet } from '../model/packet.ts';
import type { Context } from './context.ts';
import { linesOf } from './input.ts';
import { one } from './output/show.ts';
import { oneLine } from './output/text.ts';
import { packetLines } from './output/views.ts';
import { type Options, reading, showAnswer } from './rows.ts';
import { CliError } from './terminal.ts';

/** `respond`: answers a packet's question; without --response it prompts for the answer. */
export async function respond(context: Context, options: Options, id = ''): Promise<void> {
  const client = await context.client();
  const { response, respondedBy = context.userName(), notes } = options as { response?: string; respondedBy?: string; notes?: string };
  if (respondedBy === undefined) throw new CliError('Name the person who answers with --responded-by.');
  const answer = response ?? (await ask(context, await client.getPacket({ params: { id } })));
  const body = { response: answer, responded_by: respondedBy, ...(notes === undefined ? {} : { notes }) };
  await showAnswer(context, await client.respondPacket.withResponse({ params: { id }, body }), one(packetLines));
}

/** Prompts for the answer on standard error: the number of an option, or any text. */
async function ask(context: Context, packet: Packet): Promise<string> {
  const { stdin, err } = context;
  const { lines, options } = await reading(context, () => questionOf(packet));
  for (const line of lines) err.line(line);
  const question = options.length > 0 ? `Answer (1 to ${options.length}, or any text): ` : 'Answer: ';
  err.question(question);
  for await (const line of linesOf(stdin(), 'The answer')) {
    const text = line.trim();
    if (text !== '') return options[Number(text) - 1] ?? text;
    err.question(question);
  }
  throw new CliError('No answer was given; pass one with --response.');
}

function questionOf({ status, hitl }: Packet): { lines: string[]; options: string[] } {
  if (status !== 'awaiting_human' || hitl === null) throw new CliError(`The packet is ${status} and awaits no answer.`, 1);
  const options = (hitl.options ?? []).map((option) => (typeof option === 'string' ? option : JSON.stringify(option)));
  const why = hitl.reason === '' ? [] : [`Why: ${oneLine(hitl.reason)}`];
  return { lines: [oneLine(hitl.question), ...why, ...options.map((option, index) => `  ${index + 1}  ${oneLine(option)}`)], options };
}
