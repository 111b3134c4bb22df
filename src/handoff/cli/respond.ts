import { choicesOf } from '../model/options.ts';
import type { Packet, RespondRequest } from '../model/packet.ts';
import type { Context } from './context.ts';
import { linesOf } from './input.ts';
import { oneLine } from './output/text.ts';
import { onePacket } from './output/views.ts';
import { type Options, reading, showAnswer } from './rows.ts';
import { CliError } from './terminal.ts';

/** `respond`: answers a packet's question; without --response it prompts for the answer. */
export async function respond(context: Context, options: Options, id = ''): Promise<void> {
  const client = await context.client();
  const { response, respondedBy = context.userName(), notes } = options as { response?: string; respondedBy?: string; notes?: string };
  if (respondedBy === undefined) throw new CliError('Name the person who answers with --responded-by.');
  const answer = response === undefined ? await ask(context, await client.getPacket({ params: { id } })) : { response };
  const body = { ...answer, responded_by: respondedBy, ...(notes === undefined ? {} : { notes }) };
  await showAnswer(context, await client.respondPacket.withResponse({ params: { id }, body }), onePacket);
}

/** Prompts for the answer on standard error: the number of an option, or any text. */
async function ask(context: Context, packet: Packet): Promise<Pick<RespondRequest, 'response' | 'digest'>> {
  const { stdin, err } = context;
  const { lines, options, digest } = await reading(context, () => questionOf(packet));
  for (const line of lines) err.line(line);
  const question = options.length > 0 ? `Answer (1 to ${options.length}, or any text): ` : 'Answer: ';
  err.question(question);
  for await (const line of linesOf(stdin(), 'The answer')) {
    const text = line.trim();
    // The digest has the service refuse the answer if the question has changed since it was shown.
    if (text !== '') return { response: options[Number(text) - 1]?.value ?? text, ...(digest === undefined ? {} : { digest }) };
    err.question(question);
  }
  throw new CliError('No answer was given; pass one with --response.');
}

function questionOf({ status, hitl }: Packet) {
  if (status !== 'awaiting_human' || hitl === null) throw new CliError(`The packet is ${status} and awaits no answer.`, 1);
  if (hitl.schema !== undefined) throw new CliError('The question has a form; answer it by an answer link (packets answer-link).', 1);
  const options = choicesOf(hitl.options);
  const why = hitl.reason === '' ? [] : [`Why: ${oneLine(hitl.reason)}`];
  const lines = [oneLine(hitl.question), ...why, ...options.map(({ label }, index) => `  ${index + 1}  ${oneLine(label)}`)];
  return { lines, options, digest: hitl.digest };
}
