import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { createHandoffClient, NoAnswer, type WorkHandler } from '../../../src/client.ts';
import { Writer } from '../../../src/handoff/cli/output/writer.ts';
import { runCli } from '../../../src/handoff/cli/program.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { addChannel, channelLinkOf, channelSettings, fromElsewhere } from '../../support/channel-links.ts';
import { packetIn } from '../../support/life.ts';
import { callTool, mcp } from '../../support/mcp.ts';
import { adminKey, startService, type TestService } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const respond = (service: TestService, id: string, response = 'Yes') =>
  service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana' } });
const held = async (service: TestService) => (await packetIn(service, 'claimed', { hitl: undefined })).id as string;
const taskOf = async (service: TestService, taskId: string) => (await mcp(service, 'tasks/get', { taskId }, { tasks: true })).body.result;

for (const store of stores) {
  describe(`Questions over MCP on ${store.name}`, () => {
    test('a second one is refused with the first one and get_answer; the answer reaches the caller that it is for alone', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const first = await callTool(service, 'ask_human', { packet_id: id, question: 'Refund 10 to Ann?' }, { tasks: true });
      const second = await callTool(service, 'ask_human', { packet_id: id, question: 'Delete the account of Bob?', wait_seconds: 0 });
      assert.equal(second.isError, true);
      const { question_id } = (await service.call('GET', `/packets/${id}`)).body.hitl;
      assert.match(second.content[0].text, new RegExp(`QUESTION_OPEN.*\n.*get_answer.*${question_id}`));
      await respond(service, id);
      const { result } = await taskOf(service, first.taskId);
      assert.deepEqual([result.structuredContent.question, result.structuredContent.response], ['Refund 10 to Ann?', 'Yes']);
      // Another question is open now, which the end of the first task does not withdraw.
      const third = await callTool(service, 'ask_human', { packet_id: id, question: 'And Bob?' }, { tasks: true });
      await mcp(service, 'tasks/cancel', { taskId: first.taskId }, { tasks: true });
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'awaiting_human');
      assert.equal((await taskOf(service, third.taskId)).status, 'working');
      const pending = (await callTool(service, 'get_answer', { packet_id: id, wait_seconds: 0 })).structuredContent;
      assert.deepEqual([pending.answered, pending.question, pending.response], [false, 'And Bob?', null]);
      const earlier = (await callTool(service, 'get_answer', { packet_id: id, question_id, wait_seconds: 0 })).structuredContent;
      assert.deepEqual([earlier.question, earlier.response], ['Refund 10 to Ann?', 'Yes']);
    });

    test('ask_human takes the fields of a question; with a key it is the same question, however many came after it', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const fields = {
        ...{ question: 'Pay 100?', reason: 'Policy', options: ['Yes', 'No'], strict_options: true, responder: 'dana' },
        ...{ timeout_seconds: 60, on_timeout: 'fail', remind_after_seconds: 30, exclude_source: false, key: 'pay' },
      };
      await callTool(service, 'ask_human', { packet_id: id, ...fields, wait_seconds: 0 });
      const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
      for (const [name, value] of Object.entries(fields)) assert.deepEqual(hitl[name], value, name);
      await respond(service, id);
      await callTool(service, 'ask_human', { packet_id: id, question: 'Else?', wait_seconds: 0 });
      await respond(service, id, 'No');
      const again = (await callTool(service, 'ask_human', { packet_id: id, ...fields })).structuredContent;
      assert.deepEqual([again.answered, again.response, again.question_id], [true, 'Yes', hitl.question_id]);
      const changed = await callTool(service, 'ask_human', { packet_id: id, ...fields, question: 'Pay 200?' });
      assert.match(changed.content[0].text, /KEY_CHANGED/);
    });

    test('a task follows its question while the same agent changes it; changed by another agent it ends with the reason replaced', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const ask = () => callTool(service, 'ask_human', { packet_id: id, question: 'Refund 10?' }, { tasks: true });
      const change = (agent: string, question: string) =>
        service.call('PATCH', `/packets/${id}`, { body: { hitl: { question } }, headers: { 'x-agent-id': agent } });
      const own = await ask();
      assert.equal((await change('resolver', 'Refund 20?')).status, 200);
      assert.equal((await taskOf(service, own.taskId)).status, 'working');
      await respond(service, id);
      const { result } = await taskOf(service, own.taskId);
      assert.deepEqual([result.structuredContent.question, result.structuredContent.response], ['Refund 20?', 'Yes']);
      const other = await ask();
      assert.equal((await change('somebody', 'Refund 30?')).status, 200);
      await respond(service, id);
      const ended = await taskOf(service, other.taskId);
      assert.deepEqual([ended.status, ended.error.data.reason], ['failed', 'replaced']);
    });
  });
}

/** What a way to ask says: whether the question was asked, and the text of a refusal. */
interface Said {
  readonly isAsked: boolean;
  readonly text: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Runs a command of `service-cli` against a service that listens. */
async function cli(service: SharedService, ...args: string[]): Promise<{ code: number; text: string }> {
  let text = '';
  const add = (part: string) => {
    text += part;
  };
  const writer = () => new Writer({ write: (part: string) => add(part) } as never, {});
  const environment = { SERVICE_URL: `${await service.listen()}/api/v1`, SERVICE_API_KEY: service.key, HOME: '/nowhere' };
  const code = await runCli({ stdin: () => process.stdin, out: writer(), err: writer(), isInteractive: false, args, environment });
  return { code, text };
}

/** The options of `packets ask` for the fields of a question. */
const flagsOf = (fields: Fields): string[] =>
  Object.entries(fields).flatMap(([name, value]) => {
    const flag = `--${{ timeout_seconds: 'timeout', remind_after_seconds: 'remind-after', options: 'option' }[name] ?? name.replaceAll('_', '-')}`;
    if (Array.isArray(value)) return value.flatMap((one) => [flag, String(one)]);
    if (typeof value === 'boolean') return value ? [flag] : [];
    return [flag, typeof value === 'object' ? JSON.stringify(value) : String(value)];
  });

const partsOf = (data: unknown) => ({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ data }], taskId: '' } });

/** The ways to ask. */
const ask: Readonly<Record<string, (service: SharedService, id: string, fields: Fields) => Promise<Said>>> = {
  async rest(service, id, body) {
    const { status, text } = await service.call('POST', `/packets/${id}/questions`, { body });
    return { isAsked: status === 201, text };
  },
  async patch(service, id, hitl) {
    const { status, text } = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
    return { isAsked: status === 200, text };
  },
  async mcp(service, id, fields) {
    const { isError, content } = await callTool(service, 'ask_human', { packet_id: id, ...fields, wait_seconds: 0 });
    return { isAsked: isError !== true, text: content[0].text };
  },
  async a2a(service, id, fields) {
    const { message } = partsOf({ ask: fields });
    const { body, text } = await a2a(service, 'SendMessage', {
      message: { ...message, taskId: id },
      configuration: { returnImmediately: true },
    });
    return { isAsked: body.result !== undefined, text };
  },
  async cli(service, id, fields) {
    const { code, text } = await cli(service, 'packets', 'ask', id, ...flagsOf(fields));
    return { isAsked: code === 0, text };
  },
};

/** The ways to answer with a word. A message by mail has the same link as one to Slack. */
const answer: Readonly<Record<string, (service: SharedService, id: string, response: string) => Promise<unknown>>> = {
  rest: (service, id, response) => service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana' } }),
  async link(service, id, response) {
    const { body } = await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'dana' } });
    if (body.url === undefined) return body;
    const { digest } = await hitlOf(service, id);
    const headers = { 'content-type': 'application/x-www-form-urlencoded', ...fromElsewhere() };
    const raw = new URLSearchParams({ own: '1', response, digest }).toString();
    return service.call('POST', `/${new URL(body.url).pathname}`, { key: null, raw, headers });
  },
  async channel(service, id, response) {
    const found = await channelLinkOf(service, id);
    if (found === undefined) return undefined;
    const digest = /name="digest" value="([0-9a-f]{64})"/.exec(found.page)![1]!;
    const headers = { 'content-type': 'application/x-www-form-urlencoded', ...fromElsewhere() };
    const raw = new URLSearchParams({ own: '1', response, digest, name: 'dana' }).toString();
    return service.call('POST', found.path, { key: null, raw, headers });
  },
  console: (service, id, response) =>
    service.call('POST', `//console/api/v1/packets/${id}/respond`, { body: { response, responded_by: 'dana' } }),
  a2a: (service, id, response) => a2a(service, 'SendMessage', messageOf(response, { taskId: id })),
  cli: (service, id, response) => cli(service, 'respond', id, '--response', response, '--by', 'dana'),
};

// biome-ignore lint/suspicious/noExplicitAny: a test looks into questions of every shape.
const hitlOf = async (service: TestService, id: string): Promise<any> => (await service.call('GET', `/packets/${id}`)).body.hitl;

/** What each face says of a packet. */
async function facesOf(service: SharedService, id: string): Promise<Record<string, string>> {
  const packet = await service.call('GET', `/packets/${id}`);
  const told = await callTool(service, 'get_answer', { packet_id: id, wait_seconds: 0 });
  return {
    rest: JSON.stringify(packet.body.hitl),
    brief: (await service.call('GET', `/packets/${id}/brief`)).text,
    mcp: JSON.stringify([told.structuredContent, told.content]),
    a2a: (await a2a(service, 'GetTask', { id, historyLength: 20 })).text,
    cli: (await cli(service, 'packets', 'get', id)).text,
  };
}

const askWays = Object.entries(ask);
const answerWays = Object.entries(answer);
const form = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };

for (const store of stores) {
  const desk = async () => {
    const service = await shareService(store, channelSettings);
    await addChannel(service);
    return service;
  };

  describe(`Every way to ask and to answer, on ${store.name}`, () => {
    test('what was answered stays beside its own question; the next question shows none of it, on every face', async () => {
      const service = await desk();
      // Each way to ask and each way to answer at least once.
      for (const [index, [answered, answers]] of answerWays.entries()) {
        const id = await held(service);
        const [way, asks] = askWays[index % askWays.length]!;
        const where = `${way}, ${answered}`;
        const asked = await asks(service, id, { question: 'Refund 10 EUR?' });
        assert.ok(asked.isAsked, `${where}: ${asked.text}`);
        await answers(service, id, 'Yes-please');
        const { question_id, response } = await hitlOf(service, id);
        assert.equal(response, 'Yes-please', where);
        // What was answered can't be made the answer to another question, and what is about it may change.
        const body = { hitl: { question: 'Refund 10,000 EUR?' }, context: { summary: 'Close the account' } };
        const changed = await service.call('PATCH', `/packets/${id}`, { body });
        assert.deepEqual([changed.status, changed.body.code], [409, 'ANSWERED'], where);
        assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { context: body.context } })).status, 200);
        for (const [face, text] of Object.entries(await facesOf(service, id)))
          assert.ok(text.includes('Yes-please') && text.includes('Refund 10 EUR?'), `${where}, ${face}: ${text}`);
        const again = await asks(service, id, { question: 'Refund 20 EUR?' });
        assert.ok(again.isAsked, `${where}: ${again.text}`);
        for (const [face, text] of Object.entries(await facesOf(service, id)))
          assert.ok(!text.includes('Yes-please') && text.includes('Refund 20 EUR?'), `${where}, ${face}: ${text}`);
        const record = (await service.call('GET', `/packets/${id}/questions/${question_id}`)).body;
        assert.deepEqual([record.answer.response, record.question.question], ['Yes-please', 'Refund 10 EUR?']);
        assert.notEqual(record.shown.summary, 'Close the account', where);
      }
    });

    test('a second question while one is open is refused, and takes no answer of the first', async () => {
      const service = await desk();
      for (const [way, asks] of askWays) {
        // A PATCH of an open question changes it.
        if (way === 'patch') continue;
        const id = await held(service);
        await asks(service, id, { question: 'Refund 10 to Ann?' });
        const { question_id } = await hitlOf(service, id);
        const second = await asks(service, id, { question: 'Delete the account of Bob?' });
        assert.equal(second.isAsked, false, way);
        assert.match(second.text, /question.*open/i, way);
        assert.equal((await hitlOf(service, id)).question_id, question_id, way);
      }
    });

    test('the same question again is another one without an answer, unless it has a key', async () => {
      const service = await desk();
      for (const [way, asks] of askWays) {
        const id = await held(service);
        const ids = new Set<string>();
        for (const key of [undefined, undefined, 'pay']) {
          await asks(service, id, { question: 'Pay?', ...(key === undefined ? {} : { key }) });
          const { question_id, response } = await hitlOf(service, id);
          assert.equal(response, null, way);
          ids.add(question_id);
          await respond(service, id);
        }
        assert.equal(ids.size, 3, way);
        // With the key of an answered question it is that question: nothing is asked.
        const { isAsked } = await asks(service, id, { question: 'Pay?', key: 'pay' });
        const { question_id, response } = await hitlOf(service, id);
        assert.deepEqual([ids.has(question_id), response], [true, 'Yes'], `${way}: ${isAsked}`);
        const other = await asks(service, id, { question: 'Pay twice?', key: 'pay' });
        assert.equal(other.isAsked, false, way);
        assert.match(other.text, /The key .*pay.* belongs to another question/, way);
      }
    });

    test('takes all fields of a question, which leave nothing to the next one; its source stays excluded [H416]', async () => {
      const service = await desk();
      for (const [index, [way, asks]] of askWays.entries()) {
        const id = await held(service);
        const fields = {
          ...{ question: 'How much?', reason: 'Policy', schema: form, responder: 'dana', key: 'sum' },
          ...{ timeout_seconds: 3600, on_timeout: 'fail', remind_after_seconds: 30 },
        };
        assert.ok((await asks(service, id, fields)).isAsked, way);
        for (const [name, value] of Object.entries(fields)) assert.deepEqual((await hitlOf(service, id))[name], value, `${way}: ${name}`);
        await service.call('POST', `/packets/${id}/respond`, { body: { data: { amount: 3 }, responded_by: 'dana' } });
        assert.ok((await asks(service, id, { question: 'Sure?' })).isAsked, way);
        const next = await hitlOf(service, id);
        for (const name of Object.keys(fields))
          if (name !== 'question' && name !== 'reason') assert.equal(next[name], undefined, `${way}: ${name}`);
        assert.deepEqual([next.reason, next.expires_at, next.data], ['', null, undefined], way);
        await answerWays[index % answerWays.length]![1](service, id, 'Yes');
        assert.equal((await hitlOf(service, id)).response, 'Yes', way);
        const strict = { options: ['Yes', 'No'], strict_options: true, exclude_source: true, require_verified: true };
        const choice = await asks(service, id, { question: 'Which?', ...strict });
        assert.ok(choice.isAsked, `${way}: ${choice.text}`);
        for (const [name, value] of Object.entries(strict)) assert.deepEqual((await hitlOf(service, id))[name], value, `${way}: ${name}`);
        for (const [answered, answers] of answerWays) {
          await answers(service, id, 'Yes');
          assert.equal((await hitlOf(service, id)).response, null, `${way}, ${answered}: its source may not answer`);
        }
        // Neither withdrawn nor changed by its source.
        assert.equal((await service.call('DELETE', `/packets/${id}/question`)).status, 403, way);
        assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { hitl: { question: 'Other?' } } })).status, 403, way);
        const action = { tool: 'refund', arguments: { amount: 3 } };
        const called = await held(service);
        assert.ok((await asks(service, called, { action })).isAsked, way);
        assert.deepEqual((await hitlOf(service, called)).action.arguments, action.arguments, way);
      }
    });

    test('nobody sets who asks', async () => {
      const service = await desk();
      const asked_by = { agent_id: 'cfo', agent_name: 'Chief Financial Officer' };
      for (const [way, asks] of askWays) {
        if (way === 'cli') continue;
        const id = await held(service);
        assert.equal((await asks(service, id, { question: 'Pay?', asked_by })).isAsked, false, way);
        await asks(service, id, { question: 'Pay?' });
        const changed = await service.call('PATCH', `/packets/${id}`, { body: { hitl: { asked_by } } });
        assert.deepEqual([changed.status, changed.body.field], [400, 'hitl.asked_by'], way);
        assert.equal((await hitlOf(service, id)).asked_by.agent_id, 'resolver', way);
      }
    });

    test('channels are told of each question, and of a changed one again at most once a minute', async () => {
      const service = await desk();
      const { body: channel } = await service.call('POST', '/channels', {
        body: { kind: 'slack', target: 'https://hooks.slack.com/services/x' },
      });
      const told = async () => (await service.call('GET', `/channels/${channel.id}/deliveries`)).body.length;
      const id = await held(service);
      await ask.rest!(service, id, { question: 'Refund 10?' });
      assert.equal(await told(), 1);
      const change = (question: string) => service.call('PATCH', `/packets/${id}`, { body: { hitl: { question } } });
      for (const [seconds, question, deliveries] of [
        [59, 'Refund 20?', 1],
        [1, 'Refund 30?', 2],
        [59, 'Refund 40?', 2],
        [0, 'Refund 50?', 2],
        [1, 'Refund 60?', 3],
        // What changes nothing that is shown tells nobody.
        [60, 'Refund 60?', 3],
      ] as const) {
        service.clock.turn(seconds);
        assert.equal((await change(question)).status, 200);
        assert.equal(await told(), deliveries, question);
      }
      await respond(service, id);
      await ask.mcp!(service, id, { question: 'And Bob?' });
      assert.equal(await told(), 4, 'another question is told of at once');
    });
  });
}

/** What a handler may do with a question that nobody answers, and how its packet ends. */
const unanswered: Record<string, [WorkHandler, string]> = {
  'returns without an answer': [
    async ({ ask: asks }) => {
      await asks('Nobody?', { timeoutSeconds: 60 }).catch((error: unknown) => assert.ok(error instanceof NoAnswer, String(error)));
      return { context: { custom: { answered: false } } };
    },
    'completed',
  ],
  'raises it': [({ ask: asks }) => asks('Nobody?', { timeoutSeconds: 60 }).then(() => undefined), 'failed'],
  'returns while the question is open': [
    async ({ ask: asks, packet }) => {
      asks('Nobody?').catch(() => undefined);
      await until(() => openQuestions.has(packet.id));
      return undefined;
    },
    'failed',
  ],
};
const openQuestions = new Set<string>();

for (const store of stores)
  test(`A question that nobody answers ends with its packet when the handler does, whatever that does, on ${store.name}`, async (t) => {
    const service = await startService(t, { store });
    const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
    const stopping = new AbortController();
    t.after(() => stopping.abort());
    const handlers = new Map<string, WorkHandler>();
    const ids = new Map<string, string>();
    for (const [what, [handler]] of Object.entries(unanswered)) {
      const { id } = await packetIn(service, 'created', { hitl: undefined });
      handlers.set(id, handler);
      ids.set(what, id);
    }
    const working = client.work('resolver', (context) => handlers.get(context.packet.id)!(context), {
      ...{ concurrency: handlers.size, signal: stopping.signal, onError: () => undefined },
    });
    await until(async () => (await service.call('GET', '/packets/awaiting')).body.packets.length === handlers.size);
    for (const id of ids.values()) openQuestions.add(id);
    service.clock.turn(60);
    // What changes ends the waits of the handlers, which then see that the time is over.
    for (const id of ids.values()) await service.call('PATCH', `/packets/${id}`, { body: { context: { custom: { looked_at: true } } } });
    for (const [what, [, status]] of Object.entries(unanswered)) {
      const id = ids.get(what)!;
      const ended = await until(async () => {
        const { body } = await service.call('GET', `/packets/${id}`);
        return ['completed', 'failed'].includes(body.status) && body;
      });
      assert.equal(ended.status, status, what);
      const { questions } = (await service.call('GET', `/packets/${id}/questions`)).body;
      assert.deepEqual([questions.length, questions[0].answer], [1, null], what);
      assert.ok(['timed_out', 'ended'].includes(questions[0].state), `${what}: ${questions[0].state}`);
    }
    stopping.abort();
    await working;
  });

/** Code that reads the answer of a question beside the one function that knows its state. */
const readsAnswer = /\bhitl\??!?\.(?:response|responded_at|responded_by|answered_by)\b|\{[^{}]*\bresponse\b[^{}]*\} = [\w.]*\bhitl\b/;

test('no face, command or page tells an open question from an answered one by itself', () => {
  const root = fileURLToPath(new URL('../../../src/handoff/', import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.tsx?$/.test(name) && !name.includes('dist/') && name !== 'rules/question-state.ts',
  );
  assert.ok(files.length > 200);
  const own = files.filter((name) => readsAnswer.test(readFileSync(`${root}${name}`, 'utf8')));
  assert.deepEqual(own, []);
});
