import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';

import { a2a, messageOf } from '../../support/a2a.ts';
import { addChannel, channelLinkOf, channelSettings, fromElsewhere } from '../../support/channel-links.ts';
import { historyOf, packetIn } from '../../support/life.ts';
import { callTool } from '../../support/mcp.ts';
import type { TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** What a person was shown, by the response that was given to it. Each response is given once. */
type Given = Map<string, { readonly question: string; readonly summary: string }>;

interface Step {
  readonly way: number;
  readonly act: 'ask' | 'change' | 'summary' | 'answer' | 'withdraw' | 'wait';
  readonly text: string;
}

const steps = fc.array(
  fc.record<Step>({
    way: fc.nat({ max: 4 }),
    act: fc.constantFrom('ask', 'change', 'summary', 'answer', 'answer', 'withdraw', 'wait'),
    text: fc.constantFrom('Refund 10?', 'Refund 10,000?', 'Close it?'),
  }),
  { minLength: 4, maxLength: 24 },
);

/** Asks over REST, by PATCH, over MCP or over A2A. A refusal is no fault: another question may be open. */
async function ask(service: TestService, id: string, { way, text }: Step): Promise<void> {
  const fields = { question: text, timeout_seconds: 60 };
  if (way === 0) await service.call('POST', `/packets/${id}/questions`, { body: fields });
  else if (way === 1) await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl: fields } });
  else if (way === 2) await callTool(service, 'ask_human', { packet_id: id, ...fields, wait_seconds: 0 });
  else {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ data: { ask: fields } }], taskId: id };
    await a2a(service, 'SendMessage', { message, configuration: { returnImmediately: true } });
  }
}

/** Answers what is on the screen over REST, by a link, in the console, by the link in a message of a channel, or over A2A. */
async function answer(service: TestService, id: string, way: number, response: string, given: Given): Promise<void> {
  const { status, hitl, context } = (await service.call('GET', `/packets/${id}`)).body;
  if (status !== 'awaiting_human') return;
  given.set(response, { question: hitl.question, summary: context.summary });
  const { digest } = hitl;
  const headers = { 'content-type': 'application/x-www-form-urlencoded', ...fromElsewhere() };
  if (way === 2) {
    await service.call('POST', `//console/api/v1/packets/${id}/respond`, { body: { response, responded_by: 'dana', digest } });
  } else if (way === 3) {
    const found = await channelLinkOf(service, id);
    if (found === undefined) return;
    // What the page of the link shows is what the person answers.
    const shown = /name="digest" value="([0-9a-f]{64})"/.exec(found.page)![1]!;
    assert.equal(shown, digest, 'the page of a channel shows the question as it is');
    const raw = new URLSearchParams({ own: '1', response, digest: shown, name: 'dana' }).toString();
    await service.call('POST', found.path, { key: null, raw, headers });
  } else if (way === 0) await service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana', digest } });
  else if (way === 1) {
    const { body: link } = await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'dana' } });
    if (link.url === undefined) return;
    const raw = new URLSearchParams({ own: '1', response, digest }).toString();
    await service.call('POST', `/${new URL(link.url).pathname}`, { key: null, raw, headers });
  } else await a2a(service, 'SendMessage', messageOf(response, { taskId: id }));
}

async function take(service: TestService, id: string, step: Step, index: number, given: Given): Promise<void> {
  const patch = (body: object) => service.call('PATCH', `/packets/${id}`, { body });
  if (step.act === 'ask') await ask(service, id, step);
  else if (step.act === 'change') await patch({ hitl: { question: step.text } });
  else if (step.act === 'summary') await patch({ context: { summary: `Summary ${index}` } });
  else if (step.act === 'answer') await answer(service, id, step.way, `answer-${index}`, given);
  else if (step.act === 'withdraw') await service.call('DELETE', `/packets/${id}/question`);
  else service.clock.turn(61);
}

/** Asserts that each answer stands beside the question that its person was shown, wherever it stands. */
async function assertShown(service: TestService, id: string, given: Given): Promise<void> {
  const beside = (face: string, response: string | null | undefined, question: string) => {
    if (response !== null && response !== undefined) assert.equal(question, given.get(response)?.question, `${face}: ${response}`);
  };
  const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
  if (hitl !== null) beside('the packet', hitl.response, hitl.question);
  const { questions } = (await service.call('GET', `/packets/${id}/questions?limit=200`)).body;
  for (const { question, answer: own, shown } of questions) {
    beside('the record', own?.response, question.question);
    if (own !== null) assert.deepEqual([shown.question, shown.summary], Object.values(given.get(own.response)!));
  }
  const texts = new Map(
    questions.map(({ question_id, question }: { question_id: string; question: { question: string } }) => [question_id, question.question]),
  );
  for (const { event_type, details } of await historyOf(service, id)) {
    if (event_type !== 'hitl_responded') continue;
    beside('the history', String(details.response), String(details.question));
    assert.equal(texts.get(String(details.question_id)), details.question);
  }
  const told = (await callTool(service, 'get_answer', { packet_id: id, wait_seconds: 0 })).structuredContent;
  beside('MCP', told.response, told.question);
  // The inbox and the lists of the console and the command line show packets as the API has them.
  const awaiting: { id: string; hitl: { response: string | null } }[] = (await service.call('GET', '/packets/awaiting')).body.packets;
  for (const packet of awaiting) assert.equal(packet.hitl.response, null, 'the inbox has no answers');
  const brief = JSON.stringify((await service.call('GET', `/packets/${id}/brief`)).body);
  for (const [response, { question }] of given) {
    if (!brief.includes(`${response}"`) && !brief.includes(`${response}\\n`)) continue;
    assert.ok(brief.includes(question), `the brief: ${response}`);
    assert.equal(hitl?.response, response, 'the brief has no earlier answer');
  }
  const { result } = (await a2a(service, 'GetTask', { id, historyLength: 10 })).body;
  const history = JSON.stringify(result);
  for (const response of given.keys())
    if (history.includes(`"${response}"`)) assert.equal(hitl?.response, response, 'A2A has no earlier answer');
}

for (const store of stores)
  test(`Whatever is asked, changed, answered, withdrawn or late, no answer stands beside a question that its person was not shown, on ${store.name}`, async () => {
    const service = await shareService(store, channelSettings);
    await addChannel(service);
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const { id } = await packetIn(service, 'claimed', { hitl: undefined });
        const given: Given = new Map();
        for (const [index, step] of sequence.entries()) {
          await take(service, id, step, index, given);
          await assertShown(service, id, given);
        }
      }),
      { numRuns: 8 },
    );
  });
