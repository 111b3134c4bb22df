import type { Answer } from '../../kit/client.ts';
import { ApiError } from '../../kit/client-errors.ts';
import type { HandoffClient } from '../client/client.ts';
import type { CreateRequest, PatchRequest } from '../model/packet.ts';
import type { Context } from './context.ts';
import { named } from './errors.ts';
import { type Document, located, readDocument, readInput } from './input.ts';
import { createProgress, type Progress } from './output/progress.ts';
import { shown } from './output/show.ts';
import { onePacket } from './output/views.ts';
import { type Options, reading, showAnswer } from './rows.ts';
import { CliError } from './terminal.ts';

/** The fields of a packet that flags set. With a file they override every packet in it. */
type PacketOptions = Partial<
  Record<'sourceId' | 'sourceName' | 'targetId' | 'targetName' | 'summary' | 'priority' | 'notBefore' | 'dueAt', string>
> & {
  readonly tag?: string[];
  readonly subject?: string[];
};
type Value = Record<string, unknown>;

/** `packets create`: creates a packet from flags, the packet in a file, or several packets in batches. */
export async function createPacket(context: Context, options: Options): Promise<void> {
  const client = await context.client();
  const create = async (body: CreateRequest) => showAnswer(context, await client.createPacket.withResponse({ body }), onePacket);
  if (options.file === undefined) return create(requestOf(options));
  const input = await readInput(String(options.file), context);
  if ('one' in input) return locating(input.one, () => create(applyFlags(input.one.value, options) as CreateRequest));
  const work: Work = { context, client, progress: createProgress(context), created: 0, refused: 0 };
  try {
    for await (const batch of batchesOf(work, input.many, options)) await createBatch(work, batch);
  } finally {
    work.progress.clear();
  }
  const { created, refused } = work;
  context.say(`${created} created, ${refused} refused.`);
  if (refused > 0) throw new CliError(`${refused} of ${created + refused} packets were refused.`, 1);
}

/** `packets chain`: continues a packet with a new one, from flags or a file. */
export async function chainPacket(context: Context, options: Options, id = ''): Promise<void> {
  const found = await documentIn(context, options);
  const body = (found === undefined ? requestOf(options) : applyFlags(found.value, options)) as CreateRequest;
  const { chainPacket: chain } = await context.client();
  await locating(found, async () => showAnswer(context, await chain.withResponse({ params: { id }, body }), onePacket));
}

/** `packets update`: changes a packet by flags, a file, or both. */
export async function updatePacket(context: Context, options: Options, id = ''): Promise<void> {
  const { status, summary, priority, tag, subject, ifMatch, token } = options as Options & PacketOptions & { status?: string };
  const found = await documentIn(context, options);
  const body = { ...fieldsIn(found?.value) };
  if (status !== undefined) body.status = status;
  if (summary !== undefined) body.context = { ...fieldsIn(body.context), summary };
  if (priority !== undefined) body.metadata = { ...fieldsIn(body.metadata), priority };
  if (tag !== undefined) body.metadata = { ...fieldsIn(body.metadata), tags: tag };
  if (subject !== undefined) body.metadata = { ...fieldsIn(body.metadata), subjects: subject };
  Object.assign(body, timesIn(options));
  if (Object.keys(body).length === 0)
    throw new CliError('Nothing to change: use --status, --summary, --priority, --tag, --subject, --not-before, --due-at or --file.');
  const headers = { ...(ifMatch ? { 'if-match': String(ifMatch) } : {}), ...(token ? { 'x-lease-token': String(token) } : {}) };
  const { patchPacket: patch } = await context.client();
  const request = { params: { id }, body: body as PatchRequest, headers };
  await locating(found, async () => showAnswer(context, await patch.withResponse(request), onePacket));
}

const documentIn = async (context: Context, { file }: Options) =>
  file === undefined ? undefined : await readDocument(String(file), context);

/** Runs the work; an error about a field of the document gets the line of that field. */
async function locating(document: Document | undefined, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw document === undefined ? error : await located(error, document);
  }
}

function requestOf(options: Options): CreateRequest {
  const missing = ['source-id', 'target-id', 'summary'].filter((name) => options[name.replace('-i', 'I')] === undefined);
  if (missing.length > 0) throw new CliError(`A packet needs ${missing.map((name) => `--${name}`).join(', ')}, or a file with --file.`);
  return applyFlags({}, options) as CreateRequest;
}

const fieldsIn = (value: unknown): Value => (typeof value === 'object' && value !== null ? (value as Value) : {});

/** The times that flags set; `none` removes one. */
function timesIn(options: Options): Value {
  const { notBefore, dueAt } = options as PacketOptions;
  const timeOf = (text: string) => (text === 'none' ? null : text);
  return {
    ...(notBefore === undefined ? {} : { not_before: timeOf(notBefore) }),
    ...(dueAt === undefined ? {} : { due_at: timeOf(dueAt) }),
  };
}

/** The request with the fields that the flags override. */
function applyFlags(value: unknown, options: Options): unknown {
  const { sourceId, sourceName, targetId, targetName, summary, priority, tag, subject } = options as PacketOptions;
  const times = timesIn(options);
  const flags = [sourceId, sourceName, targetId, targetName, summary, priority, tag, subject, ...Object.values(times)];
  if (flags.every((flag) => flag === undefined)) return value;
  const request = fieldsIn(value);
  const metadata = fieldsIn(request.metadata);
  const agent = (before: unknown, id: string | undefined, name: string | undefined, more: Value): unknown =>
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
      ...(subject === undefined ? {} : { subjects: subject }),
    },
    ...(summary === undefined ? {} : { context: { ...fieldsIn(request.context), summary } }),
    ...times,
  };
}

/** The most packets, and the most characters, in one request. */
const batchItems = 100;
const batchText = 4_000_000;

interface Work {
  readonly context: Context;
  readonly client: HandoffClient;
  readonly progress: Progress;
  created: number;
  refused: number;
}
type Created = Awaited<ReturnType<HandoffClient['batchCreate']>>;
type Refused = Pick<Created['errors'][number], 'index' | 'error' | 'field'>;
type Item = Document & { readonly request: unknown };

async function* batchesOf(work: Work, documents: AsyncIterable<Document> | Iterable<Document>, options: Options): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  let size = 0;
  for await (const document of documents) {
    if (document.fault !== undefined) {
      report(work, document.fault);
      continue;
    }
    const request = applyFlags(document.value, options);
    const { length } = JSON.stringify(request ?? null);
    if (batch.length === batchItems || (batch.length > 0 && size + length > batchText)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push({ ...document, request });
    size += length;
  }
  if (batch.length > 0) yield batch;
}

async function createBatch(work: Work, batch: readonly Item[]): Promise<void> {
  // The server validates the documents.
  const packets = batch.map(({ request }) => request as CreateRequest);
  let answer: Answer<Created>;
  try {
    answer = await work.client.batchCreate.withResponse({ body: { packets } });
  } catch (error) {
    const { status_code = 0, body = {} } = error instanceof ApiError ? error : {};
    if (Array.isArray(body.created) && Array.isArray(body.errors)) await reportRefused(work, batch, body.errors as Refused[]);
    // The server may have smaller limits on batches than this command, so try two halves.
    else if ([400, 413].includes(status_code) && batch.length > 1) {
      const middle = Math.ceil(batch.length / 2);
      await createBatch(work, batch.slice(0, middle));
      await createBatch(work, batch.slice(middle));
      return;
    } else {
      throw await located(error, batch[0]!);
    }
    if (status_code === 429) throw error;
    return;
  }
  const { context, progress } = work;
  progress.clear();
  await showAnswer(
    context,
    answer,
    shown(({ created }) => created.map(({ id }) => id)),
  );
  const { created, errors } = answer.body;
  work.created += created.length;
  await reportRefused(work, batch, await reading(context, () => errors.map(({ index, error, field }) => ({ index, error, field }))));
  progress.show(batch.at(-1)!.done, `${work.created} created, ${work.refused} refused`);
}

async function reportRefused(work: Work, batch: readonly Item[], errors: readonly Refused[]): Promise<void> {
  for (const { index, error, field } of errors)
    report(work, `${await batch[index]?.locationOf(field ?? '')}: ${named(field, String(error))}`);
}

/** Counts and reports a refused packet. */
function report(work: Work, sentence: string): void {
  work.refused += 1;
  work.progress.clear();
  work.context.err.line(sentence);
}
