import type { ContractRequest } from '../model/contract.ts';
import type { CreateRequest } from '../model/packet.ts';
import type { Context } from './context.ts';
import { named } from './errors.ts';
import { located, readDocument } from './input.ts';
import { oneContract } from './output/views.ts';
import { type Options, showAnswer } from './rows.ts';
import { CliError } from './terminal.ts';

/** `agents contract set`: publishes the contract in a file. */
export async function setContract(context: Context, { ifMatch }: Options, agent_id = '', file = ''): Promise<void> {
  const document = await readDocument(file, context);
  const { publishContract } = await context.client();
  const headers = ifMatch === undefined ? {} : { 'if-match': String(ifMatch) };
  const request = { params: { agent_id }, body: document.value as ContractRequest, headers };
  try {
    await showAnswer(context, await publishContract.withResponse(request), oneContract);
  } catch (error) {
    throw await located(error, document);
  }
}

/** `agents contract check`: says whether the packet in a file would be created or why not, and creates nothing. */
export async function checkPacket(context: Context, _: Options, file = ''): Promise<void> {
  const document = await readDocument(file, context);
  const { createPacket } = await context.client();
  const { ok, errors } = await createPacket({ body: document.value as CreateRequest, query: { dry_run: true } });
  if (context.format === 'json') context.out.json(JSON.stringify({ ok, errors }));
  if (ok) return context.format === 'json' ? undefined : context.say('The packet would be created.');
  const lines: string[] = [];
  for (const { field, message } of errors) lines.push(`${await document.locationOf(field ?? '')}: ${named(field, message)}`);
  throw new CliError(`The packet would be refused.\n${lines.join('\n')}`, 1);
}
