import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { ApiError, ClientError, type CreateRequest, createHandoffClient, type HandoffClient, type Packet } from '../../src/client.ts';
import { plural } from '../../src/kit/wording.ts';
import { createHandoff } from '../../src/server.ts';
import { say } from '../demo/show.ts';
import { type A2aAgent, connectByA2a } from './a2a-agent.ts';
import { connectByMcp, type McpAgent, ToolError } from './mcp-agent.ts';

/**
 * `npm run demo:agents -- [FILE]`: three agents hand a case over, each by another protocol. The frontline agent creates the packet
 * by REST; the agent for whom it is works on it by MCP and asks a person, who answers by an answer link; a supervisor follows
 * it by A2A and has the frontline agent tell the customer. FILE has a create request in each line; by default there is one case,
 * whose receiver has a contract: the first attempt to hand it over is refused, and corrected by what the refusal says.
 * It starts its own service in memory, or uses the one at SERVICE_URL with SERVICE_API_KEY.
 */

const usage = `Usage: npm run demo:agents -- [FILE]

Three agents hand the create requests in FILE (JSON Lines; by default one case) over by REST, MCP and A2A.
  SERVICE_URL      a handoff service, such as http://localhost:8080 (default: one of its own, in memory)
  SERVICE_API_KEY  an API key of that service`;

const person = 'dana';

const example: CreateRequest = {
  metadata: {
    source_agent: { id: 'frontline', name: 'Frontline agent', framework: 'scripted' },
    target_agent: { id: 'resolver', name: 'Resolution desk' },
    priority: 'high',
  },
  context: { summary: 'Order 4711 was charged twice; the customer asks for a refund.' },
  actions: { pending: [{ id: 'a1', description: 'Refund the second charge', assignee: 'resolver' }] },
};

/** What the agent for whom the example is asks for. */
const contract = {
  description: 'Refunds need the order: custom.order_id, such as ORD-4711.',
  schema: {
    properties: {
      context: {
        required: ['custom'],
        properties: { custom: { required: ['order_id'], properties: { order_id: { type: 'string', pattern: '^ORD-[0-9]+$' } } } },
      },
    },
  },
  examples: [{ context: { custom: { order_id: 'ORD-4711' } } }],
};

/** What the frontline agent can say of the example, by the field that a refusal names. */
const knowledge: Readonly<Record<string, unknown>> = { 'context.custom': { order_id: 'ORD-4711' } };

/** Ends the demonstration with a message for the user. */
class Stop extends Error {}

interface Agents {
  readonly frontline: HandoffClient;
  readonly worker: McpAgent;
  readonly supervisor: A2aAgent;
}

/** Follows the packet's task by A2A to its end. */
async function follow(supervisor: A2aAgent, line: number, { id }: Packet, opened: () => void, signal: AbortSignal): Promise<void> {
  for await (const { state, text } of supervisor.follow(id, signal)) {
    say(line, 'A2A', `${supervisor.id} sees ${state}${text === '' ? '' : `: ${text}`}`);
    opened();
  }
}

/** Works on the packet by MCP, as the prompt `work_on_next` says. */
async function work(worker: McpAgent, line: number, agentId: string, tag: string): Promise<Packet> {
  const held = await worker.claimNext(agentId, [tag]);
  say(line, 'MCP', `${agentId} claims ${held.id}`);
  const decision = { id: `demo-${tag}`, decision: 'Ask before money is paid', rationale: 'It is not mine to decide', decided_by: agentId };
  await worker.begin(held, decision);
  const asked = {
    question: held.hitl?.question ?? 'Refund the second charge?',
    reason: held.hitl?.reason ?? 'Refunds need approval',
    options: held.hitl?.options ?? ['Approve', 'Refuse'],
  };
  say(line, 'MCP', `${agentId} asks: ${asked.question}`);
  const { response, responded_by } = await worker.ask(held, asked);
  say(line, 'MCP', `${agentId} hears from ${responded_by}: ${response}`);
  const results = held.actions.pending.map(({ id }) => ({ id, result: `Done; ${responded_by} said ${response}`, completed_by: agentId }));
  await worker.complete(held, results);
  say(line, 'MCP', `${agentId} completes the packet, ${plural(results.length, 'action')} done`);
  return held;
}

/** Answers the question of the packet on the page of an answer link, as a person in a browser; by the API if the page refuses. */
async function answer(client: HandoffClient, line: number, { id }: Packet, signal: AbortSignal): Promise<void> {
  let { status, hitl } = await client.getPacket({ params: { id }, signal });
  while (status !== 'awaiting_human')
    ({ status, hitl } = await client.getPacket({ params: { id }, query: { wait_seconds: 60, until: 'awaiting_human' }, signal }));
  const { url } = await client.createAnswerLink({ params: { id }, body: { responder: person } });
  const page = await (await fetch(url)).text();
  const [digest = ''] = /(?<=name="digest" value=")[0-9a-f]+/.exec(page) ?? [];
  const [option = 'Yes'] = hitl?.options ?? [];
  const response = typeof option === 'string' ? option : JSON.stringify(option);
  const sent = await fetch(url, { method: 'POST', body: new URLSearchParams({ digest, response }) });
  if (sent.ok) say(line, 'person', `${person} answers on the page of an answer link: ${response}`);
  else {
    // The page takes only some answers a minute from one address.
    await client.respondPacket({ params: { id }, body: { response, responded_by: person } });
    say(line, 'person', `${person} answers by the API, since the answer page is limited (${sent.status}): ${response}`);
  }
}

/** Has the frontline agent tell the customer: a message by A2A in the context of the case, which REST completes. */
async function closeCase({ frontline, supervisor }: Agents, line: number, { id, metadata }: Packet, signal: AbortSignal): Promise<Packet> {
  const { id: agent_id, name: agent_name } = metadata.source_agent;
  const task = await supervisor.send(id, agent_id, 'Tell the customer how the case ended.');
  say(line, 'A2A', `${supervisor.id} sends a message in the context of the case: packet ${task.id}`);
  const following = supervisor.follow(task.id, signal);
  await following.next();
  const params = { id: task.id };
  await frontline.claimPacket({ params, body: { agent_id, agent_name } });
  say(line, 'REST', `${agent_id} claims ${task.id}`);
  const told = { id: 'told', description: 'Tell the customer', result: 'The customer knows.', completed_by: agent_id };
  const child = await frontline.patchPacket({ params, body: { status: 'completed', actions: { completed: [told] } } });
  say(line, 'REST', `${agent_id} completes it`);
  for await (const { state, text } of following) say(line, 'A2A', `${supervisor.id} sees ${state}${text === '' ? '' : `: ${text}`}`);
  return child;
}

/** Prints the history of a chain, and returns the number of its events. */
async function showHistory(client: HandoffClient, line: number, chain: readonly Packet[]): Promise<number> {
  let count = 0;
  for (const { id, parent_packet_id } of chain) {
    const { events } = await client.packetHistory({ params: { id } });
    say(line, 'history', parent_packet_id === null ? `${id}, the first packet of the chain` : `${id}, chained to it`);
    for (const { event_type, actor } of events) say(undefined, '', `${event_type} by ${actor}`);
    count += events.length;
  }
  return count;
}

/** Hands a case over; a refusal by the contract of the receiver is corrected by the fields that it names, as far as they are known. */
async function handOver(client: HandoffClient, line: number, body: CreateRequest): Promise<Packet> {
  try {
    return await client.createPacket({ body });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'CONTRACT_VIOLATION') throw error;
    const missing = error.errors.filter(({ field }) => Object.hasOwn(knowledge, field));
    if (missing.length < error.errors.length) throw error;
    say(line, 'refused', error.message);
    const { description } = error.body.contract as { description: string | null };
    say(line, '', `${body.metadata.target_agent.id} asks for: ${description}`);
    const corrected = structuredClone(body) as unknown as Record<string, Record<string, unknown>>;
    for (const { field } of missing) {
      const [part, name] = field.split('.') as [string, string];
      corrected[part] = { ...corrected[part], [name]: knowledge[field] };
    }
    return client.createPacket({ body: corrected as unknown as CreateRequest });
  }
}

/** Plays one case; returns the number of events in its history. */
async function play(agents: Agents, line: number, request: CreateRequest): Promise<number> {
  const { frontline, worker, supervisor } = agents;
  const tag = `demo-${randomUUID()}`;
  const tags = [...(request.metadata?.tags ?? []), tag];
  const packet = await handOver(frontline, line, { ...request, metadata: { ...request.metadata, tags } });
  const { source_agent, target_agent } = packet.metadata;
  say(line, 'REST', `${source_agent.id} creates ${packet.id} for ${target_agent.id}`);
  say(line, '', packet.context.summary);
  const ended = new AbortController();
  try {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    const following = follow(supervisor, line, packet, open, ended.signal);
    await Promise.race([opened, following]);
    await Promise.all([work(worker, line, target_agent.id, tag), answer(frontline, line, packet, ended.signal), following]);
    const child = await closeCase(agents, line, packet, ended.signal);
    return await showHistory(frontline, line, [packet, child]);
  } finally {
    ended.abort();
  }
}

/** The create requests of a file, with the numbers of their lines. */
function casesIn(file: string | undefined): { line: number; request: CreateRequest }[] {
  if (file === undefined) return [{ line: 1, request: example }];
  // npm runs scripts in the package's folder; a relative path refers to the user's folder.
  const lines = readFileSync(resolve(process.env.INIT_CWD ?? '.', file), 'utf8').split('\n');
  return lines.flatMap((text, index) => {
    if (text.trim() === '') return [];
    try {
      return [{ line: index + 1, request: JSON.parse(text) as CreateRequest }];
    } catch {
      throw new Stop(`Line ${index + 1} of ${file} is not JSON.`);
    }
  });
}

/** Publishes the contract of the example's receiver, unless it has one. */
async function publish(client: HandoffClient, agent_id: string): Promise<void> {
  try {
    await client.publishContract({ params: { agent_id }, body: contract, headers: { 'if-none-match': '*' } });
    say(1, 'REST', `${agent_id} publishes a contract: ${contract.description}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status_code !== 412) throw error;
  }
}

async function main(args: readonly string[], { SERVICE_URL: given, SERVICE_API_KEY: givenKey = '' }: NodeJS.ProcessEnv): Promise<void> {
  if (args.length > 1 || args[0]?.startsWith('-')) throw new Stop(usage);
  if (given && givenKey === '') throw new Stop('SERVICE_API_KEY must hold an API key of the service at SERVICE_URL.');
  const cases = casesIn(args[0]);
  await using own = given ? undefined : await createHandoff();
  const { origin } = new URL(own?.url ?? given!);
  const key = own?.adminKey ?? givenKey;
  const frontline = createHandoffClient({ baseUrl: origin, apiKey: key });
  // Its sentences explain a wrong address and a wrong key.
  await frontline.listPackets({ query: { limit: 1 } });
  await using worker = await connectByMcp(origin, key);
  const supervisor = await connectByA2a(origin, key, 'supervisor');
  console.log(`Three agents hand ${plural(cases.length, 'case')} over at ${origin}, by REST, MCP and A2A.\n`);
  const [first] = (await worker.instructions('resolver')).split('\n');
  console.log(`The prompt work_on_next tells a model: ${first} ...\n`);
  const counts = { cases: 0, refused: 0, events: 0 };
  if (args[0] === undefined) await publish(frontline, 'resolver');
  for (const { line, request } of cases) {
    try {
      counts.events += await play({ frontline, worker, supervisor }, line, request);
      counts.cases += 1;
    } catch (error) {
      if (!(error instanceof ApiError) || ![400, 413].includes(error.status_code)) throw error;
      counts.refused += 1;
      say(line, 'refused', error.message);
    }
  }
  console.log(`\n${plural(counts.cases, 'case')} completed, ${counts.refused} refused, ${plural(counts.events, 'event')} in the histories`);
  if (counts.refused > 0 || counts.cases === 0) process.exitCode = 1;
}

/** The error as a sentence; rethrows unexpected errors. */
function sentenceOf(error: unknown): string {
  if (error instanceof Stop || error instanceof ClientError || error instanceof ToolError) return error.message;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === 'ERR_MODULE_NOT_FOUND') return 'The client of MCP is not installed: npm --prefix examples/demo-agents ci';
  if (path !== undefined) return `${path} can't be read (${code}).`;
  throw error;
}

try {
  await main(process.argv.slice(2), process.env);
} catch (error) {
  console.error(sentenceOf(error));
  process.exitCode = 1;
}
