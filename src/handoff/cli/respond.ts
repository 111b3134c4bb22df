import type { Command } from 'commander';

import type { Packet } from '../model/packet.ts';
import { act, type Context } from './context.ts';
import { given } from './options.ts';
import { packetLines } from './output/packets.ts';
import { showOne } from './output/show.ts';
import { printable } from './output/text.ts';
import { CliError, type Terminal } from './terminal.ts';

interface RespondOptions {
  response?: string;
  respondedBy?: string;
  notes?: string;
}

/** `respond`: answers a packet's question; without --response it prompts for the answer. */
export function addRespondCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('respond')
    .description("answer a packet's question; without --response it shows the question and prompts for the answer")
    .argument('<packet_id>', 'its id')
    .option('--response <text>', 'the answer')
    .option('--responded-by <name>', 'the person who answers (default: the name of the user)')
    .option('--notes <text>', 'additional remarks');
  act<RespondOptions>(command, terminal, respond);
}

async function respond(context: Context, { response, respondedBy, notes }: RespondOptions, id: string): Promise<void> {
  const client = await context.client();
  const responded_by = respondedBy ?? context.terminal.userName();
  if (responded_by === undefined) throw new CliError('Name the person who answers with --responded-by.');
  const answer = response ?? (await ask(context.terminal, await client.getPacket({ params: { id } })));
  const body = given({ response: answer, responded_by, notes });
  showOne(context, await client.respondPacket.withResponse({ params: { id }, body }), packetLines);
}

/** Prompts for the answer on standard error: the number of an option, or any text. */
async function ask({ stdin, stderr }: Terminal, { status, hitl }: Packet): Promise<string> {
  if (status !== 'awaiting_human' || hitl === null) {
    throw new CliError(`The packet is ${status} and awaits no answer.`, 1);
  }
  const options = (hitl.options ?? []).map((option) => (typeof option === 'string' ? option : JSON.stringify(option)));
  stderr.write(`${printable(hitl.question)}\n`);
  if (hitl.reason !== '') stderr.write(`Why: ${printable(hitl.reason)}\n`);
  options.forEach((option, index) => void stderr.write(`  ${index + 1}  ${printable(option)}\n`));
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: stdin, output: stderr, terminal: stdin.isTTY === true && stderr.isTTY === true });
  lines.setPrompt(options.length > 0 ? `Answer (1 to ${options.length}, or any text): ` : 'Answer: ');
  lines.prompt();
  try {
    for await (const line of lines) {
      const text = line.trim();
      if (text !== '') return options[Number(text) - 1] ?? text;
      lines.prompt();
    }
  } finally {
    lines.close();
  }
  throw new CliError('No answer was given; pass one with --response.');
}
