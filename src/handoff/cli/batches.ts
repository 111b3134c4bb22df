import type { Answer } from '../../kit/client.ts';
import { ApiError } from '../../kit/client-errors.ts';
import type { HandoffClient } from '../client/client.ts';
import type { CreateRequest, Packet } from '../model/packet.ts';
import type { Context } from './context.ts';
import { type Document, named, readInput } from './input.ts';
import { packetLines } from './output/packets.ts';
import { createProgress, type Progress } from './output/progress.ts';
import { showJson, showOne } from './output/show.ts';
import { applyFlags, type CreateOptions } from './packets-create.ts';
import { CliError } from './terminal.ts';

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

interface Refused {
  readonly index: number;
  readonly error: string;
  readonly field: string | null;
}

/** Creates the packet in a file, or several packets in batches. A refused packet is reported with its line and field. */
export async function createFrom(context: Context, file: string, options: CreateOptions): Promise<void> {
  const input = await readInput(file, context.terminal);
  const client = await context.client();
  if ('one' in input) {
    try {
      const body = applyFlags(input.one.value, options) as CreateRequest;
      return showOne(context, await client.createPacket.withResponse({ body }), packetLines);
    } catch (error) {
      throw await input.one.located(error);
    }
  }
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

type Item = Document & { readonly request: unknown };

async function* batchesOf(
  work: Work,
  documents: AsyncIterable<Document> | Iterable<Document>,
  options: CreateOptions,
): AsyncGenerator<Item[]> {
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
  let answer: Answer<{ created: Packet[]; errors: Refused[] }>;
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
      throw await batch[0]!.located(error);
    }
    if (status_code === 429) throw error;
    return;
  }
  const { context, progress } = work;
  const { created, errors } = answer.body;
  progress.clear();
  if (context.format === 'json') showJson(context, answer);
  else for (const { id } of created) context.print(id);
  work.created += created.length;
  await reportRefused(work, batch, errors);
  progress.show(batch.at(-1)!.done, `${work.created} created, ${work.refused} refused`);
}

async function reportRefused(work: Work, batch: readonly Item[], errors: readonly Refused[]): Promise<void> {
  for (const { index, error, field } of errors) report(work, `${await batch[index]!.placeOf(field ?? '')}: ${named(field, error)}`);
}

/** Counts and reports a refused packet. */
function report(work: Work, sentence: string): void {
  work.refused += 1;
  work.progress.clear();
  work.context.terminal.stderr.write(`${sentence}\n`);
}
