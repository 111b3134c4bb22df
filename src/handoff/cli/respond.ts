import { offeredBy, onlyVerified, takesOnlyVerified } from '../model/offered.ts';
import { choicesOf } from '../model/options.ts';
import type { Packet, RespondRequest } from '../model/packet.ts';
import { askedStatus } from '../rules/packet-life.ts';
import type { Context } from './context.ts';
import { linesOf } from './input.ts';
import { oneLine } from './output/text.ts';
import { onePacket } from './output/views.ts';
import { type Options, reading, showAnswer } from './rows.ts';
import { CliError } from './terminal.ts';

/** `respond`: answers a packet's question; without --response it prompts for the answer. */
export async function respond(context: Context, options: Options, id = ''): Promise<void> {
  const client = await context.client();
  const { response, respondedBy, notes } = options as { response?: string; respondedBy?: string; notes?: string };
  const prompt = createPrompt(context);
  const own = respondedBy === undefined ? await client.getOwnKey() : undefined;
  const responder = respondedBy ?? (await reading(context, () => own?.responder ?? null));
  if (responder === null && !context.isInteractive) throw new CliError('Name the person who answers with --by.');
  const answer = response === undefined ? await ask(context, prompt, await client.getPacket({ params: { id } })) : { response };
  const responded_by = responder ?? (await prompt('Your name: ')) ?? '';
  if (responded_by === '') throw new CliError('No name was given; pass one with --by.');
  const body = { ...answer, responded_by, ...(notes === undefined ? {} : { notes }) };
  await showAnswer(context, await client.respondPacket.withResponse({ params: { id }, body }), onePacket);
}

/** Asks a question on standard error; undefined when the input ends without a line that says something. */
type Prompt = (question: string) => Promise<string | undefined>;

/** Makes the prompt of a command, which reads standard input line by line. */
function createPrompt({ stdin, err }: Context): Prompt {
  let lines: AsyncGenerator<string> | undefined;
  return async (question) => {
    lines ??= linesOf(stdin(), 'The answer');
    for (;;) {
      err.question(question);
      const { value, done } = await lines.next();
      if (done) return undefined;
      if (value.trim() !== '') return value.trim();
    }
  };
}

/** Prompts for the answer: the number of an option, or any text. */
async function ask(context: Context, prompt: Prompt, packet: Packet): Promise<Pick<RespondRequest, 'response' | 'digest'>> {
  const { lines, options, digest } = await reading(context, () => questionLines(packet));
  for (const line of lines) context.err.line(line);
  const text = await prompt(options.length > 0 ? `Answer (1 to ${options.length}, or any text): ` : 'Answer: ');
  if (text === undefined) throw new CliError('No answer was given; pass one with --response.');
  // The digest has the service refuse the answer if the question has changed since it was shown.
  // A number that is an option itself is that option, whatever its place.
  const isOption = options.some(({ value }) => value === text);
  const chosen = !isOption && /^[1-9]\d*$/.test(text) ? options[Number(text) - 1] : undefined;
  return { response: chosen?.value ?? text, ...(digest === undefined ? {} : { digest }) };
}

function questionLines({ status, hitl, context, actions, decisions }: Packet) {
  if (status !== askedStatus || hitl === null) throw new CliError(`The packet is ${status} and awaits no answer.`, 1);
  const { action, edited } = hitl;
  const options =
    action === undefined ? choicesOf(hitl.options) : choicesOf(offeredBy(action).filter((word) => word === 'approve' || word === 'reject'));
  if (hitl.schema !== undefined && options.length === 0)
    throw new CliError('The question has a form; answer it by an answer link (packets answer-link).', 1);
  const why = hitl.reason === '' ? [] : [`Why: ${oneLine(hitl.reason)}`];
  const shown = edited?.arguments ?? action?.arguments ?? {};
  const called = action === undefined ? [] : [`Tool: ${oneLine(action.tool)}`, ...JSON.stringify(shown, null, 2).split('\n').map(oneLine)];
  const about = [
    `Summary: ${oneLine(context.summary)}`,
    ...actions.pending.map(({ description, assignee }) => `To be done: ${oneLine(description)} (${oneLine(assignee)})`),
    ...decisions.map(({ decision, rationale }) => `Decided: ${oneLine([decision, rationale].filter(Boolean).join(' – '))}`),
  ];
  const choices = options.map(({ label }, index) => `  ${index + 1}  ${oneLine(label)}`);
  // All that the question is about is shown: it is what the digest covers.
  const needed = takesOnlyVerified(hitl) ? [onlyVerified] : [];
  const lines = [...about, oneLine(hitl.question), ...why, ...called, ...needed, ...choices];
  return { lines, options, digest: hitl.digest };
}
