import { createReadStream } from 'node:fs';
import { relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { createHandoffClient, type HandoffClient } from '../../src/handoff/client/client.ts';
import { apiPrefix } from '../../src/handoff/model/api.ts';
import type { ChainRequest, CreateRequest, Packet } from '../../src/handoff/model/packet.ts';
import { ApiError, ClientError, NetworkError } from '../../src/kit/client-errors.ts';
import type { ClientStep } from '../../src/kit/connection.ts';
import { plural } from '../../src/kit/wording.ts';
import { createHandoff } from '../../src/server.ts';
import { type Listeners, startListeners } from './listeners.ts';
import { say } from './show.ts';

/**
 * `npm run demo -- [FILE]`: plays handoffs, as their agents and a person who answers questions, in a service of its own or
 * against a running one.
 * FILE has a create request per line; by default it is the sample beside this program. Meanwhile it receives the events by
 * webhook and stream, and finally compares them with the history. It uses the service only through its routes.
 */

const usage = `Usage: npm run demo -- [FILE]

Plays the create requests in FILE (JSON Lines; by default a sample) in a service of its own, in memory.
  SERVICE_API_KEY  an API key of a running service, to play them there
  SERVICE_URL      where that service is (default http://localhost:8080${apiPrefix})
Signed deliveries come to a receiver of the demonstration where the service runs with SERVICE_WEBHOOK_ALLOW=127.0.0.1.`;

/** The most lines and characters of one batch request. */
const batchLines = 20;
const batchText = 1_000_000;

/** The longest wait for a 429, and the most waits in a row; a longer limit ends the demonstration. */
const maxWaitSeconds = 90;
const maxWaits = 5;

const person = 'dana';
const sample = fileURLToPath(new URL('sample.jsonl', import.meta.url));

/** The figures of the final summary. */
const counts = {
  packets: 0,
  claims: 0,
  'lost claims': 0,
  'questions asked': 0,
  'questions answered': 0,
  completed: 0,
  chained: 0,
  'history events': 0,
  'lines skipped': 0,
  'steps refused': 0,
};

type Agent = CreateRequest['metadata']['target_agent'];

/** A line of the input: its number and its value. */
interface Line {
  readonly number: number;
  readonly value: unknown;
}

/** A created packet and its input line. */
interface Played {
  readonly line: number;
  readonly packet: Packet;
}

/** The ids of all packets created here, and the time of the first one. */
const createdIds = new Set<string>();
let firstCreatedAt = '';

function recordCreated({ id, created_at }: Packet): void {
  createdIds.add(id);
  if (firstCreatedAt === '' || created_at < firstCreatedAt) firstCreatedAt = created_at;
}

/** Ends the demonstration with a message for the user. */
class Stop extends Error {}

// Output.

function skip(line: number, why: string): void {
  counts['lines skipped'] += 1;
  say(line, 'skipped', why);
}

// Clients.

/** Prints why the client waits before a retry. */
function sayWait(step: ClientStep): void {
  if (step.kind !== 'wait' || !(step.error instanceof ApiError)) return;
  const { status_code, message } = step.error;
  say(undefined, 'waiting', `${plural(step.seconds, 'second')}: the service answered ${status_code}. ${message}`);
}

interface Clients {
  client: HandoffClient;
  streamClient(onOpen: () => void): HandoffClient;
}

/** Creates the clients, once the service has answered. */
async function connect(baseUrl: string, key: string): Promise<Clients> {
  try {
    await createHandoffClient({ baseUrl, retries: 0 }).health();
  } catch (error) {
    const why = error instanceof NetworkError ? error.code : (error as Error).message;
    throw new Stop(
      `No handoff service answers at ${baseUrl} (${why}). Start one with "npm start", or set SERVICE_URL (it ends in ${apiPrefix}).`,
    );
  }
  const options = { baseUrl, apiKey: key, retries: maxWaits, maxWaitSeconds };
  return {
    client: createHandoffClient({ ...options, onStep: sayWait }),
    streamClient: (onOpen) =>
      createHandoffClient({
        ...options,
        onStep(step) {
          sayWait(step);
          if (step.kind === 'answer' && step.status === 200) onOpen();
        },
      }),
  };
}

// Input.

async function* readLines(file: string): AsyncGenerator<Line> {
  let number = 0;
  for await (const text of createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    const json = text.replace(/^\uFEFF/, '').trim();
    if (json === '') continue;
    try {
      yield { number, value: JSON.parse(json) };
    } catch {
      skip(number, 'This is not JSON.');
    }
  }
}

/** The lines of the input in batches for one request. */
async function* readBatches(file: string): AsyncGenerator<Line[]> {
  let batch: Line[] = [];
  let size = 0;
  for await (const line of readLines(file)) {
    const length = JSON.stringify(line.value).length;
    if (batch.length === batchLines || (batch.length > 0 && size + length > batchText)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(line);
    size += length;
  }
  if (batch.length > 0) yield batch;
}

// Source agents: creating packets.

/** Creates packets from the lines; the service reports invalid ones. */
async function createAll(client: HandoffClient, lines: readonly Line[]): Promise<Played[]> {
  if (lines.length === 1) return createOne(client, lines[0]!);
  try {
    const { created, errors } = await client.batchCreate({ body: { packets: lines.map(({ value }) => value as CreateRequest) } });
    for (const { index, error } of errors) skip(lines[index]!.number, error);
    const refused = new Set(errors.map(({ index }) => index));
    return lines.filter((_, index) => !refused.has(index)).map(({ number }, index) => ({ line: number, packet: created[index]! }));
  } catch (error) {
    // The whole batch was refused, because all lines are invalid or it is too large. Sending single lines shows which.
    if (!(error instanceof ApiError) || (error.status_code !== 400 && error.status_code !== 413)) throw error;
    return (await Array.fromAsync(lines, (line) => createOne(client, line))).flat();
  }
}

async function createOne(client: HandoffClient, { number, value }: Line): Promise<Played[]> {
  try {
    return [{ line: number, packet: await client.createPacket({ body: value as CreateRequest }) }];
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status_code !== 400 && error.status_code !== 413)) throw error;
    skip(number, error.message);
    return [];
  }
}

function showCreated({ line, packet }: Played): void {
  counts.packets += 1;
  recordCreated(packet);
  const { target_agent, priority } = packet.metadata;
  say(line, 'created', `${packet.id} ${priority}, for ${target_agent.name}`);
  say(line, '', packet.context.summary);
}

// Target agents: working on packets.

/** Claims a packet; undefined if another agent was faster. */
async function claim(
  client: HandoffClient,
  { line, packet }: Played,
  { id, name, framework = 'demo' }: Agent,
): Promise<Packet | undefined> {
  try {
    const claimed = await client.claimPacket({ params: { id: packet.id }, body: { agent_id: id, agent_name: name, framework } });
    counts.claims += 1;
    say(line, 'claimed', `by ${name} (${id})`);
    return claimed;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status_code !== 409) throw error;
    counts['lost claims'] += 1;
    say(line, 'lost', `${id} gets 409: ${error.message}`);
    return undefined;
  }
}

/** Claims as the target agent; for every third packet a second agent competes. */
async function claimOrRace(client: HandoffClient, played: Played, turn: number): Promise<Packet | undefined> {
  const target = played.packet.metadata.target_agent;
  const rivals = turn % 3 === 1 ? [{ ...target, id: `${target.id}-2`, name: `${target.name}, second desk` }] : [];
  const claims = await Promise.all([target, ...rivals].map((agent) => claim(client, played, agent)));
  return claims.find((packet) => packet !== undefined);
}

async function start(client: HandoffClient, line: number, id: string): Promise<Packet> {
  const started = await client.patchPacket({ params: { id }, body: { status: 'in_progress' } });
  say(line, 'started', `status ${started.status}`);
  return started;
}

/** Asks the packet's question, or a sample question for every second packet without one. Returns the packet if it was asked. */
async function ask(client: HandoffClient, line: number, { id, hitl }: Packet, turn: number): Promise<Packet | undefined> {
  if (hitl === null && turn % 2 === 0) return undefined;
  const sampleQuestion = {
    required: false,
    reason: 'A person should know before the work goes on',
    question: 'Shall the work go on as planned?',
    options: ['Yes', 'No'],
  };
  const body = { status: 'awaiting_human' as const, ...(hitl === null ? { hitl: sampleQuestion } : {}) };
  const asked = await client.patchPacket({ params: { id }, body });
  counts['questions asked'] += 1;
  say(line, 'asked', `${asked.hitl?.question} [${(asked.hitl?.options ?? []).map(textOf).join(' / ')}]`);
  return asked;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Answers with the first option of the question. */
async function answer(client: HandoffClient, line: number, { id, hitl }: Packet): Promise<Packet> {
  const [option = 'Yes, go on.'] = hitl?.options ?? [];
  const body = { response: textOf(option), responded_by: person, notes: 'Answered in the demonstration.' };
  const answered = await client.respondPacket({ params: { id }, body });
  counts['questions answered'] += 1;
  say(line, 'answered', `${answered.hitl?.responded_by}: ${answered.hitl?.response}`);
  return answered;
}

/** Completes the pending actions and adds a decision. */
async function progress(client: HandoffClient, line: number, { id, actions, claimed_by, hitl }: Packet): Promise<void> {
  const completed_by = claimed_by?.agent_id ?? '';
  const done = actions.pending.map((action) => ({ id: action.id, result: 'Done in the demonstration.', completed_by }));
  const own = { id: `demo-${id}`, description: 'Carry out what was handed over', result: 'Done in the demonstration.', completed_by };
  const rationale = hitl === null ? 'What was handed over leaves no question open' : `${hitl.responded_by} answered: ${hitl.response}`;
  const decision = { id: `demo-${id}`, decision: 'Carry it out as handed over', rationale, decided_by: completed_by };
  const body = { status: 'in_progress' as const, decisions: [decision], actions: { completed: done.length > 0 ? done : [own] } };
  const { actions: now } = await client.patchPacket({ params: { id }, body });
  say(line, 'progress', `${plural(body.actions.completed.length, 'action')} completed, ${now.pending.length} pending; 1 decision added`);
}

async function complete(client: HandoffClient, line: number, id: string): Promise<void> {
  const { revision } = await client.patchPacket({ params: { id }, body: { status: 'completed' } });
  counts.completed += 1;
  say(line, 'completed', `revision ${revision}`);
}

/** Hands a follow-up packet back to the source agent. */
async function chain(client: HandoffClient, line: number, { id, metadata, context, claimed_by }: Packet): Promise<void> {
  const { source_agent, target_agent, priority, tags } = metadata;
  const holder = {
    id: claimed_by?.agent_id ?? target_agent.id,
    name: claimed_by?.agent_name ?? target_agent.name,
    framework: claimed_by?.framework ?? 'demo',
  };
  const body: ChainRequest = {
    metadata: { source_agent: holder, target_agent: source_agent, priority, tags },
    context: { summary: `Follow up: ${context.summary}` },
    actions: { pending: [{ id: 'f1', description: 'Tell those concerned that it is done', assignee: source_agent.id }] },
  };
  const child = await client.chainPacket({ params: { id }, body });
  recordCreated(child);
  counts.chained += 1;
  say(line, 'chained', `${child.id} goes back to ${source_agent.name}`);
}

async function history(client: HandoffClient, line: number, id: string): Promise<void> {
  const { events } = await client.packetHistory({ params: { id } });
  counts['history events'] += events.length;
  const actors = Object.entries(Object.groupBy(events, ({ actor }) => actor)).map(([actor, its = []]) => `${actor} ${its.length}`);
  say(line, 'history', `${plural(events.length, 'event')}: ${actors.join(', ')}`);
}

// The complete run.

/** Plays a packet from its claim to its history. `turn` is the number of the packet and selects the scenario. */
async function play(client: HandoffClient, played: Played, turn: number): Promise<void> {
  const { line, packet } = played;
  const held = await claimOrRace(client, played, turn);
  if (held === undefined) return;
  const started = await start(client, line, packet.id);
  const asked = await ask(client, line, started, turn);
  await progress(client, line, asked === undefined ? started : await answer(client, line, asked));
  await complete(client, line, packet.id);
  if (turn % 3 === 2) await chain(client, line, held);
  await history(client, line, packet.id);
}

async function playFile(client: HandoffClient, file: string): Promise<void> {
  let turn = 0;
  for await (const lines of readBatches(file)) {
    const created = await createAll(client, lines);
    created.forEach(showCreated);
    for (const played of created) {
      try {
        await play(client, played, turn);
      } catch (error) {
        // Other clients may use the same service: an unexpected state of one packet must not end the demonstration.
        if (!(error instanceof ApiError) || [401, 429].includes(error.status_code)) throw error;
        counts['steps refused'] += 1;
        say(played.line, 'refused', `${error.status_code} ${error.message}`);
      }
      turn += 1;
    }
  }
}

/** The error as a sentence; rethrows unexpected errors. */
function sentenceOf(error: unknown): string {
  if (error instanceof Stop) return error.message;
  if (error instanceof ApiError && error.status_code === 401)
    return 'The service refused the key in SERVICE_API_KEY. The first admin key is printed when the service first starts.';
  if (error instanceof ApiError && error.status_code === 429)
    return `The service limits this key, and waiting ${maxWaitSeconds} seconds would not help: ${error.message}`;
  if (error instanceof ApiError) return `The service answered ${error.status_code}: ${error.message}`;
  if (error instanceof ClientError) return `The service can no longer be reached: ${error.message}`;
  const { code, path } = error as NodeJS.ErrnoException;
  if (path !== undefined) return `${path} can't be read (${code}).`;
  throw error;
}

async function main(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  if (args.length > 1 || args[0]?.startsWith('-')) throw new Stop(usage);
  const { SERVICE_URL: givenUrl, SERVICE_API_KEY: givenKey } = environment;
  await using own = givenUrl || givenKey ? undefined : await createHandoff({ webhookAllow: ['127.0.0.1'] });
  const key = own?.adminKey ?? givenKey?.trim() ?? '';
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new Stop('SERVICE_API_KEY must hold an API key. The first admin key is printed when the service first starts.');
  const address = own === undefined ? givenUrl || `http://localhost:8080${apiPrefix}` : `${own.url}${apiPrefix}`;
  const baseUrl = address.replace(/\/+$/, '');
  // npm runs scripts in the package's folder; a relative path refers to the user's folder.
  const file = args[0] === undefined ? sample : resolve(environment.INIT_CWD ?? '.', args[0]);

  const clients = await connect(baseUrl, key);
  console.log(`Playing ${relative('.', file)} against ${baseUrl}`);
  const startedAt = performance.now();
  const listeners = await startListeners({
    ...clients,
    onDelivered: ({ type, packetId }) => say(undefined, 'delivered', `${type} of ${packetId}, verified`),
    onRefused: () => say(undefined, 'no webhook', 'start the service with SERVICE_WEBHOOK_ALLOW=127.0.0.1 to see deliveries'),
  });
  try {
    await playFile(clients.client, file);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const isComplete = await printComparison(listeners);
    console.log('');
    for (const [name, value] of Object.entries({ ...counts, seconds })) console.log(`${name.padEnd(20)}${value}`);
    if (counts.packets === 0 || counts['steps refused'] > 0 || !isComplete) process.exitCode = 1;
  } finally {
    await listeners.close();
  }
  // With a file of its own, nothing but what is in it is created. A service of its own ends now.
  if (args[0] === undefined && own === undefined) await leaveQuestion(clients.client, baseUrl);
}

/** Leaves a question open, and prints the link on which anybody with a browser can answer it. */
async function leaveQuestion(client: HandoffClient, baseUrl: string): Promise<void> {
  const agent = { id: 'demo', name: 'Demonstration', framework: 'baton' };
  const hitl = {
    required: true,
    reason: 'It shows what a person sees.',
    question: 'Did the demonstration work for you?',
    options: ['Yes', { value: 'No', style: 'danger' }],
  };
  try {
    const { id } = await client.createPacket({
      body: { metadata: { source_agent: agent, target_agent: agent, tags: ['demo'] }, context: { summary: 'All steps were played.' } },
    });
    await client.patchPacket({ params: { id }, body: { status: 'awaiting_human', hitl } });
    const { url } = await client.createAnswerLink({ params: { id } });
    console.log(`\nA question is open. Answer it at\n${url}\nor in the inbox at ${new URL('/console', baseUrl)}`);
  } catch (error) {
    // A key without the scope, or a tier whose packets of the day are used up.
    if (!(error instanceof ApiError)) throw error;
    say(undefined, 'no question', error.message);
  }
}

/** Prints the comparison of history, stream and webhook for the packets created here; returns whether they agree. */
async function printComparison(listeners: Listeners): Promise<boolean> {
  if (createdIds.size === 0) return true;
  const { lines, agrees } = await listeners.compare(createdIds, firstCreatedAt);
  console.log(`\n${lines.join('\n')}`);
  console.log(agrees ? 'They agree, packet by packet.' : 'They differ.');
  return agrees;
}

try {
  await main(process.argv.slice(2), process.env);
} catch (error) {
  console.error(sentenceOf(error));
  process.exitCode = 1;
}
