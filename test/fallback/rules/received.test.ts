import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Condition } from '../../../src/fallback/model/chain.ts';
import { faultOfReceived, receivedOf } from '../../../src/fallback/rules/received.ts';
import { shownParts } from '../../../src/fallback/rules/stream-faults.ts';

const tools = [{ name: 'f', description: '', parameters: {} }];
const answered = { status: 200, error: null, time_to_first_token_ms: 5 };
const arrived = (text: string, given?: string) => ({
  text,
  chunks: 4,
  toolCalls: given === undefined ? [] : [{ name: 'f', arguments: given }],
  finishReason: 'stop',
  model: 'm',
});
const whole = shownParts('a').join('');

/** What is wrong with an answer in a stream behind the failure of a provider. */
const faultOf = (text: string, given?: string, success = true, condition: Condition | null = 'server_error') =>
  faultOfReceived(
    { served_by: success ? 'a' : null, attempts: [{ provider: 'a', condition }] },
    success,
    receivedOf(arrived(text, given), answered),
    { stream: true, tools: given === undefined ? [] : tools },
  );

test('What the caller got is counted by the parts that fake providers send', () => {
  const { duplicated, lost, ...others } = receivedOf(arrived(`${whole} One, two,`), answered);
  assert.deepEqual([duplicated, lost, others.tool_calls, others.text_chunks, others.model], [2, 0, [], 4, 'm']);
  assert.equal(receivedOf(arrived(' three.'), answered).lost, 3);
  assert.deepEqual(receivedOf(undefined, { status: null, error: 'no answer', time_to_first_token_ms: null }).text_chunks, 0);
});

test('What the caller got wrong is a sentence, where the calls and the end are those of the chain', () => {
  assert.equal(faultOf(whole), null);
  assert.equal(faultOf(`${whole} One,`), 'the caller got 1 part of the text more than once');
  assert.equal(faultOf(' two, three.'), 'the caller did not get 2 parts of the text');
  assert.equal(faultOf('', '{"a":1}'), null);
  assert.equal(faultOf('', '{"a"'), 'the caller got a broken call of a tool as a success');
  const inside = 'the caller got the error inside a stream with status 200, before which nothing had been sent';
  assert.equal(faultOf('', undefined, false), inside);
  for (const late of ['interrupted', 'content_filter', 'invalid_response'] as const)
    assert.equal(faultOf('', undefined, false, late), null);
});
