import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { refusalOf } from '../../../src/fallback/rules/published-params.ts';
import { argumentsFor, bodyWith, reducedBody, shapeFaults, shapesOf } from '../../../src/fallback/rules/shapes.ts';

const secretWords = ['hello world', 'sk-secret', 'Jane', 'https://example.com/cat.png', 'AAAABBBB', 'be brief', 'Paris'];
const tool = { name: 'lookup', description: 'Looks up.', parameters: { type: 'object', properties: { q: { type: 'string' } } } };

const chat = {
  model: 'gpt-4o',
  stream: true,
  user: 'Jane',
  metadata: { key: 'sk-secret' },
  max_tokens: 50,
  messages: [
    { role: 'system', content: 'be brief' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hello world' },
        { type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'lookup', arguments: '{"q":"Paris"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'Paris' },
  ],
  tools: [{ type: 'function', function: tool }],
};
const messages = {
  model: 'claude',
  max_tokens: 9,
  system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAABBBB' } },
        { type: 'text', text: 'hello world' },
      ],
    },
  ],
  tools: [{ name: 'lookup', input_schema: tool.parameters }],
};
const responses = {
  model: 'gpt-5',
  instructions: 'be brief',
  input: 'hello world',
  reasoning: { effort: 'low' },
  text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } } },
  tools: [{ type: 'mcp', server_label: 'x', authorization: 'sk-secret', server_url: 'https://mcp.example.com' }],
};
const shapes = (requests: object[], more = {}) =>
  shapesOf({ mode: 'rehearsal', request: { requests: requests as Record<string, unknown>[], ...more } });

describe('The shape of a real request', () => {
  test('has no text, image or secret of it, and keeps names, roles, tools, schemas and limits [F137]', () => {
    const texts = [chat, messages, responses].map((body) => JSON.stringify(reducedBody(body).value));
    for (const text of texts) for (const word of secretWords) assert.ok(!text.includes(word), `${word} in ${text}`);
    assert.match(
      texts[0]!,
      /"max_tokens":50.*"role":"system".*"id":"call_1".*"name":"lookup","arguments":"\{\}".*"tools":\[.*"q":\{"type":"string"\}/,
    );
    assert.match(texts[1]!, /"cache_control":\{"type":"ephemeral"\}.*"input_schema"/);
    assert.match(texts[2]!, /"effort":"low".*"schema":\{"type":"object"\}.*"server_label":"x"/);
  });

  test('takes a prompt in place of the last text of the user, of the same length [F137]', () => {
    for (const body of [chat, messages, responses]) {
      const reduced = reducedBody(body);
      assert.equal(reduced.length, 'hello world'.length);
      assert.equal(JSON.stringify(bodyWith(reduced, 'MARK')).split('MARK').length, 2);
      assert.ok(!JSON.stringify(reduced.value).includes('MARK'));
    }
    const without = reducedBody({ messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] }] });
    assert.deepEqual(bodyWith(without, 'MARK').messages, [
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'l' }] },
      { role: 'user', content: 'MARK' },
    ]);
  });

  test('counts once, whatever its texts and its model, and is called by the API that it is for, streamed as it was [F137]', () => {
    const other = { ...chat, model: 'another', messages: [{ role: 'system', content: 'be swift' }, ...chat.messages.slice(1)] };
    const found = shapes([chat, other, messages, responses]);
    assert.deepEqual(
      found.map(({ endpoint, stream, index }) => [endpoint, stream, index]),
      [
        ['chat', true, 0],
        ['messages', false, 2],
        ['responses', false, 3],
      ],
    );
    assert.deepEqual(
      shapes([chat], { stream: 'both', endpoint: 'messages' }).map(({ endpoint, stream }) => [endpoint, stream]),
      [
        ['messages', true],
        ['messages', false],
      ],
    );
    const [first, second, third] = found;
    assert.deepEqual([first!.tools[0]!.name, first!.hasImage, first!.maxTokens], ['lookup', true, 50]);
    assert.deepEqual([second!.tools[0]!.parameters, second!.hasImage], [tool.parameters, true]);
    assert.deepEqual([third!.effort, (third!.format as { type: string }).type], ['low', 'json_schema']);
  });

  test('is refused with the field where it cannot be meant [F135]', () => {
    const field = (request: object, more: object = { mode: 'rehearsal' }) =>
      shapeFaults({ ...more, request } as never).map((one) => one.field);
    assert.deepEqual(field({ stream: true }, {}), ['request']);
    assert.deepEqual(field({ stream: true }, { mode: 'drill', stream: false }), ['request.stream']);
    assert.deepEqual(field({ endpoint: 'chat' }, { mode: 'live' }), ['request.endpoint']);
    assert.deepEqual(field({ requests: [chat], tools: true }), ['request.tools']);
    assert.deepEqual(field({ requests: [{ prompt: 'x' }] }), ['request.requests.0']);
    assert.deepEqual(field({ tools: [{ type: 'function', function: {} }] }), ['request.tools.0']);
    assert.deepEqual(field({ stream: 'both', tools: [tool], images: true }), []);
  });
});

test('A fake provider calls a tool with arguments that its schema requires', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { enum: ['x', 'y'] }, c: { type: 'object', properties: { d: { type: 'integer' } } }, e: {} },
    required: ['a', 'b', 'c'],
  };
  assert.equal(argumentsFor(schema), '{"a":"text","b":"x","c":{"d":1}}');
  assert.equal(argumentsFor(undefined), '{}');
});

test('A provider at its own address refuses a field that its kind has not published, as it would [F138]', () => {
  const refused = (provider: string | null, endpoint: 'chat' | 'messages' | 'responses', body: object, api_base: string | null = null) => {
    const found = refusalOf({ provider, api_base }, endpoint, { model: 'gpt-4o', ...body });
    return found && [found.field, found.status];
  };
  assert.deepEqual(refused('openai', 'chat', { thinking: {} }), ['thinking', 400]);
  assert.deepEqual(refused('openai', 'responses', { messages: [] }), ['messages', 400]);
  assert.deepEqual(refused('anthropic', 'messages', { reasoning_effort: 'low' }), ['reasoning_effort', 400]);
  assert.deepEqual(refused('mistral', 'chat', { seed: 1 }), ['seed', 422]);
  assert.deepEqual(refused('groq', 'chat', { thinking: {} }), ['thinking', 400]);
  assert.deepEqual(refused('openai', 'chat', { model: 'gpt-5-mini', max_tokens: 9 }), ['max_tokens', 400]);
  assert.deepEqual(refused('deepseek', 'chat', { messages: [{ content: [{ type: 'image_url' }] }] }), ['messages', 400]);
  for (const [kind, base] of [
    ['openai', 'https://llm.example.com/v1'],
    [null, null],
    ['together', null],
  ] as const)
    assert.equal(refused(kind, 'chat', { thinking: {} }, base), undefined);
  assert.equal(refused('openai', 'chat', { max_tokens: 9, tools: [], reasoning_effort: 'low', stream_options: {} }), undefined);
});
