import { type Command, Option } from 'commander';

import type { PatchRequest } from '../model/packet.ts';
import { statuses } from '../model/words.ts';
import { act, type Context } from './context.ts';
import { given, priorityOption, several, tokenOption } from './options.ts';
import { packetLines } from './output/packets.ts';
import { showOne } from './output/show.ts';
import { CliError, type Terminal } from './terminal.ts';

/** The commands that change a packet. */
export function addUpdateCommands(packets: Command, terminal: Terminal): void {
  const update = packets
    .command('update')
    .description('change a packet by flags or a file')
    .argument('<packet_id>', 'its id')
    .option('-f, --file <file>', 'a JSON or YAML file with the changes to merge into it; - reads standard input')
    .addOption(new Option('--status <status>', 'the status to move to').choices(statuses))
    .option('--summary <text>', 'the new summary')
    .addOption(priorityOption())
    .option('--tag <tag>', 'the new tags (repeatable)', several)
    .option('--if-match <etag>', 'change it only if this is still its ETag');
  act<UpdateOptions>(update.addOption(tokenOption()), terminal, change);
  const complete = packets.command('complete').description('complete a packet').argument('<packet_id>', 'its id');
  act<Leased>(complete.addOption(tokenOption()), terminal, (context, { token }, id) =>
    patch(context, id, { status: 'completed' }, { token }),
  );
  const fail = packets.command('fail').description('mark a packet as failed').argument('<packet_id>', 'its id');
  act<Leased>(fail.addOption(tokenOption()), terminal, (context, { token }, id) => patch(context, id, { status: 'failed' }, { token }));
}

interface Leased {
  token?: string;
}
interface UpdateOptions extends Leased {
  file?: string;
  status?: NonNullable<PatchRequest['status']>;
  summary?: string;
  priority?: 'low';
  tag?: string[];
  ifMatch?: string;
}

async function change(
  context: Context,
  { file, status, summary, priority, tag, ifMatch, token }: UpdateOptions,
  id: string,
): Promise<void> {
  const { readDocument } = await import('./input.ts');
  const found = file === undefined ? undefined : await readDocument(file, context.terminal);
  const body: PatchRequest = { ...(found?.value as PatchRequest | undefined) };
  if (status !== undefined) body.status = status;
  if (summary !== undefined) body.context = { ...body.context, summary };
  if (priority !== undefined) body.metadata = { ...body.metadata, priority };
  if (tag !== undefined) body.metadata = { ...body.metadata, tags: tag };
  if (Object.keys(body).length === 0) throw new CliError('Nothing to change: use --status, --summary, --priority, --tag or --file.');
  try {
    await patch(context, id, body, { ifMatch, token });
  } catch (error) {
    throw found === undefined ? error : await found.located(error);
  }
}

async function patch(
  context: Context,
  id: string,
  body: PatchRequest,
  { ifMatch, token }: { ifMatch?: string | undefined; token?: string | undefined },
): Promise<void> {
  const headers = given({ 'if-match': ifMatch, 'x-lease-token': token });
  showOne(context, await (await context.client()).patchPacket.withResponse({ params: { id }, body, headers }), packetLines);
}
