import type { Command } from 'commander';

import { act, type Context } from './context.ts';
import { several } from './options.ts';
import { eventLine } from './output/packets.ts';
import { cut } from './output/text.ts';
import type { Terminal } from './terminal.ts';

interface WatchOptions {
  status?: string;
  packet?: string[];
  agent?: string[];
  since?: string;
}

/** `packets watch`: prints events as they happen, until it is interrupted. */
export function addWatchCommand(packets: Command, terminal: Terminal): void {
  const command = packets
    .command('watch')
    .description('show events of packets as they happen; reconnects and resumes when the connection breaks')
    .option('--status <status>', 'only events after which a packet has one of these statuses, comma-separated')
    .option('--packet <packet_id>', 'only events of this packet (repeatable)', several)
    .option('--agent <id>', 'only events of this agent (repeatable)', several)
    .option('--since <event_id>', 'start after this event');
  act<WatchOptions>(command, terminal, watch);
}

async function watch(context: Context, { status = '', packet = [], agent = [], since }: WatchOptions): Promise<void> {
  const subscribe = [
    ...status
      .split(',')
      .filter(Boolean)
      .map((one) => `status:${one.trim()}`),
    ...packet.map((id) => `packet:${id}`),
    ...agent.map((id) => `agent:${id}`),
  ];
  const { stdout } = context.terminal;
  for await (const event of (await context.client()).events({ subscribe, lastEventId: since })) {
    if (context.format === 'json') context.print(JSON.stringify(event));
    else {
      const line = eventLine(event);
      context.print(stdout.isTTY ? cut(line, stdout.columns || 80) : line);
    }
  }
}
