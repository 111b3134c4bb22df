import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createA2aEndpoint, type StreamedResponse } from '../../../src/handoff/a2a/http.ts';
import { packetExample } from '../../../src/handoff/model/examples.ts';
import type { Packet } from '../../../src/handoff/model/packet.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { collectGarbage } from '../../support/garbage.ts';

const taskId = packetExample.id;
const packetOf = (revision: number, more: Partial<Packet> = {}) =>
  ({ ...structuredClone(packetExample), revision, ...more }) as unknown as Packet;
const resultOf = (revision: number) =>
  ({ ...packetExample.context, artifacts: [{ key: `r${revision}`, value: `result ${revision}` }] }) as never;

/** Subscribes to a task whose packet `read` reads, and resolves its next change with `change`. */
async function subscribe(id: string, read: () => Packet) {
  const endpoint = createA2aEndpoint({ refusalOf: () => new ServiceError('SERVER_ERROR', 'It failed.') });
  let change = () => {};
  const none = async (): Promise<never> => assert.fail('nothing else is asked for');
  const session = {
    ...{ call: none, hold: () => undefined, rootsOf: none, pushes: {} as never, signal: new AbortController().signal },
    ...{ agentId: undefined, responder: 'x', address: { origin: 'http://a', version: '1', agents: [], issuer: undefined } },
    view: async () => ({ packet: read(), root: taskId, length: 0 }),
    changed: () => new Promise<void>((resolve) => (change = resolve)),
  };
  const body = { jsonrpc: '2.0', id, method: 'SubscribeToTask', params: { id: taskId } };
  const answered = await endpoint.answer({ version: '1.0', body, session }, 'JSONRPC');
  assert.ok('responses' in answered, JSON.stringify(answered));
  return { responses: answered.responses, change: () => change() };
}

const textOf = ({ head, body, tail }: StreamedResponse) => JSON.parse(`${head}${body}${tail}`);

test('streams of one task share the text of each response, and each has its own id around it', async () => {
  let packet = packetOf(1, { status: 'in_progress' });
  const streams = await Promise.all([subscribe('one', () => packet), subscribe('two', () => packet)]);
  const begun = await Promise.all(streams.map(async ({ responses }) => (await responses.next()).value!));
  assert.equal(begun[0]!.body, begun[1]!.body);
  assert.deepEqual(
    begun.map((response) => [textOf(response).id, textOf(response).result.task.id]),
    [
      ['one', taskId],
      ['two', taskId],
    ],
  );
  const next = streams.map(({ responses }) => responses.next());
  await new Promise(setImmediate);
  packet = packetOf(2, { status: 'in_progress', context: resultOf(2) });
  for (const { change } of streams) change();
  const changed = await Promise.all(next);
  assert.equal(changed[0]!.value!.body, changed[1]!.value!.body);
  assert.equal(textOf(changed[0]!.value!).result.artifactUpdate.artifact.artifactId, 'artifact-r2');
});

test('a stream that waits for the next event keeps no packet and no text', async () => {
  let revision = 0;
  const made: WeakRef<object>[] = [];
  const stream = await subscribe('one', () => {
    revision += 1;
    const packet = packetOf(revision, { status: 'in_progress', context: resultOf(revision) });
    made.push(new WeakRef(packet));
    return packet;
  });
  // What a function has awaited it keeps, so the responses are awaited by others.
  await stream.responses.next().then(({ value }) => assert.match(String(value?.body), /"task"/));
  for (let event = 1; event <= 3; event += 1) {
    const next = stream.responses.next().then(({ value }) => assert.match(String(value?.body), /"artifactUpdate"/));
    await collectGarbage();
    assert.deepEqual(
      made.map((packet) => packet.deref() === undefined),
      Array(event).fill(true),
    );
    stream.change();
    await next;
  }
});
