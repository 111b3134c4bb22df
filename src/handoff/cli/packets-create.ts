import type { Command } from 'commander';

import type { CreateRequest } from '../model/packet.ts';
import { act } from './context.ts';
import { priorityOption, several } from './options.ts';
import { packetLines } from './output/packets.ts';
import { showOne } from './output/show.ts';
import { CliError, type Terminal } from './terminal.ts';

/** The fields of a packet that flags set. With a file they override every packet in it. */
export interface CreateOptions {
  file?: string;
  sourceId?: string;
  sourceName?: string;
  targetId?: string;
  targetName?: string;
  summary?: string;
  priority?: 'low';
  tag?: string[];
}

/** Adds `create`, and to `packets` also `chain`. */
export function addCreateCommands(parent: Command, terminal: Terminal): void {
  act<CreateOptions>(
    createOptions(parent.command('create').description('create a packet from flags, or packets from a file')),
    terminal,
    async (context, options) => {
      const { createFrom } = await import('./batches.ts');
      if (options.file !== undefined) return createFrom(context, options.file, options);
      showOne(context, await (await context.client()).createPacket.withResponse({ body: requestOf(options) }), packetLines);
    },
  );
  if (parent.name() !== 'packets') return;
  const chain = parent.command('chain').description('continue a packet with a new one').argument('<packet_id>', 'the id of the parent');
  act<CreateOptions>(createOptions(chain), terminal, async (context, options, id) => {
    const { readDocument } = await import('./input.ts');
    const found = options.file === undefined ? undefined : await readDocument(options.file, context.terminal);
    const body = found === undefined ? requestOf(options) : applyFlags(found.value, options);
    try {
      showOne(
        context,
        await (await context.client()).chainPacket.withResponse({ params: { id }, body: body as CreateRequest }),
        packetLines,
      );
    } catch (error) {
      throw found === undefined ? error : await found.located(error);
    }
  });
}

function createOptions(command: Command): Command {
  return command
    .option('-f, --file <file>', 'JSON, YAML or JSON Lines; - reads standard input')
    .option('--source-id <id>', 'the id of the agent that hands over')
    .option('--source-name <name>', 'its name (default: the id)')
    .option('--target-id <id>', 'the id of the agent that should continue the work')
    .option('--target-name <name>', 'its name (default: the id)')
    .option('--summary <text>', 'a summary of the work so far')
    .addOption(priorityOption())
    .option('--tag <tag>', 'a tag (repeatable)', several);
}

function requestOf(options: CreateOptions): CreateRequest {
  const missing = (['sourceId', 'targetId', 'summary'] as const).filter((name) => options[name] === undefined);
  if (missing.length > 0) {
    const flags = missing.map((name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
    throw new CliError(`A packet needs ${flags.join(', ')}, or a file with --file.`);
  }
  return applyFlags({}, options) as CreateRequest;
}

type Fields = Record<string, unknown>;
const fieldsIn = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** The request with the fields that the flags override. */
export function applyFlags(value: unknown, { sourceId, sourceName, targetId, targetName, summary, priority, tag }: CreateOptions): unknown {
  if ([sourceId, sourceName, targetId, targetName, summary, priority, tag].every((flag) => flag === undefined)) return value;
  const request = fieldsIn(value);
  const metadata = fieldsIn(request.metadata);
  const agent = (before: unknown, id: string | undefined, name: string | undefined, more: Fields): unknown =>
    id === undefined && name === undefined
      ? before
      : { ...more, ...fieldsIn(before), ...(id === undefined ? {} : { id, name: id }), ...(name === undefined ? {} : { name }) };
  return {
    ...request,
    metadata: {
      ...metadata,
      source_agent: agent(metadata.source_agent, sourceId, sourceName, { framework: 'cli' }),
      target_agent: agent(metadata.target_agent, targetId, targetName, {}),
      ...(priority === undefined ? {} : { priority }),
      ...(tag === undefined ? {} : { tags: tag }),
    },
    ...(summary === undefined ? {} : { context: { ...fieldsIn(request.context), summary } }),
  };
}
