import type { Command } from 'commander';

import type { Agent } from '../model/work-routes.ts';
import { act } from './context.ts';
import { paged } from './options.ts';
import { sayNextPage, showList } from './output/show.ts';
import type { Column } from './output/table.ts';
import type { Terminal } from './terminal.ts';

const columns: readonly Column<Agent & { id: string }>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'LAST SEEN', value: ({ last_seen_at }) => last_seen_at },
  { title: 'HOLDING', value: ({ holding }) => holding },
  { title: 'WAITING', value: ({ waiting }) => waiting },
];

/** `agents`: the agents seen in requests, with the packets that each holds and that wait for it. */
export function addAgentCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('agents')
    .description('list the agents, most recently seen first, with the packets they hold and that wait for them');
  act<{ limit: number; offset: number }>(paged(command), terminal, async (context, { limit, offset }) => {
    const answer = await (await context.client()).listAgents.withResponse({ query: { limit, offset } });
    const { agents, total } = answer.body;
    const rows = agents.map((agent) => ({ id: agent.agent_id, ...agent }));
    showList(context, answer, rows, { columns, none: 'No agents.' });
    sayNextPage(context, agents.length, { total, offset, noun: 'agents' });
  });
}
