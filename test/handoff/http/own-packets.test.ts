import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { tools } from '../../../src/handoff/mcp/tools.ts';
import { a2aRestRoutes } from '../../../src/handoff/model/a2a.ts';
import { routes } from '../../../src/handoff/model/api.ts';
import type { HandoffRoute } from '../../../src/handoff/model/route.ts';
import type { Route } from '../../../src/kit/route.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { bodies } from '../../support/bodies.ts';
import { question, unknownId } from '../../support/life.ts';
import { mcp } from '../../support/mcp.ts';
import { newTenant, packetRequest, startOfTests, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { listenTo, openSocket } from '../../support/streams.ts';

/** What only the packets have that the key must not see. */
const secret = 'xylophone';

/** A packet between these agents. */
function between(source: string, target: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  const { metadata } = packetRequest() as { metadata: Record<string, object> };
  const agent = (id: string) => ({ id, name: id, framework: 'test' });
  return packetRequest({ metadata: { ...metadata, source_agent: agent(source), target_agent: agent(target) }, ...changes });
}

/** The body of an answer that must not be a refusal. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape.
async function must({ status, body, text }: TestAnswer, about = ''): Promise<any> {
  assert.ok(status < 300, `${about} ${status} ${text}`);
  return body;
}

/** A tenant with a key that sees all, and one that sees what belongs to `insider`, and the packets for `desk`. */
async function withKeys(service: TestService, request: Record<string, unknown> = {}) {
  const tenant = await newTenant(service);
  const post = async (path: string, body: unknown, key = tenant.key) => must(await service.call('POST', path, { key, body }), path);
  const own = await post('/keys', { name: 'insider', agents: ['insider'], sees: 'own', queues: ['desk'], ...request });
  return { ...tenant, own: own.key as string, ownId: own.id as string, created: own, post };
}

/** A secret packet in a status, with what belongs to it. */
async function hidden(service: TestService, { key, post }: Awaited<ReturnType<typeof withKeys>>, status = 'awaiting_human') {
  const body = between('outsider', 'stranger', { context: { summary: `The ${secret} repairs` }, hitl: question });
  const { id } = await post('/packets', body);
  if (status === 'claimed') await post(`/packets/${id}/claim`, { agent_id: 'stranger' });
  let link: string | undefined;
  let questionId = unknownId;
  if (status === 'awaiting_human') {
    questionId = (await must(await service.call('PATCH', `/packets/${id}`, { key, body: { status } }))).hitl.question_id;
    link = (await post(`/packets/${id}/answer-links`, {})).id;
  }
  if (status === 'expired') assert.equal((await service.call('DELETE', `/packets/${id}`, { key })).status, 204);
  return { id: id as string, link, questionId };
}

/** What of an answer must not differ between a packet that is another's and an unknown one. */
function essence({ status, text, headers }: TestAnswer, id: string): string {
  const { 'x-request-id': requestId, date: _, 'content-length': length, ...others } = headers;
  const lengthWithoutId = Number(length) - (text.includes('"request_id"') ? `${requestId}`.length : 0);
  const essential = { status, headers: others, lengthWithoutId, text: text.replace(/"request_id":"[^"]*"/, '"request_id":""') };
  return JSON.stringify(essential).replaceAll(id, '<id>');
}

/** A valid body in the name of `insider`. */
const asInsider = (body: unknown) =>
  JSON.parse(JSON.stringify(body ?? null).replace(/"(resolver|frontline)"/g, '"insider"')) as Record<string, unknown> | null;

const every = Object.entries<Route & HandoffRoute>(routes).filter(([name]) => name !== 'events' && name !== 'socket');
const ofPackets = every.filter(([, { path }]) => path.startsWith('/packets/{id}'));

type Ask = (id: string) => Promise<TestAnswer>;

/** Every way in that names a packet, and a question where it names one, by name. */
function waysOf(service: TestService, key: string, questionId: string): [string, Ask][] {
  const call = (method: string, path: string, body?: unknown, headers = {}) =>
    service.call(method, path, { key, headers, ...(body === undefined ? {} : { body }) });
  const conditions = [{}, { 'if-match': '"9"', 'if-none-match': '"1"' }, { 'if-match': '*', 'if-none-match': '*' }];
  const byRoute = ofPackets.flatMap(([name, route]) =>
    conditions.map((headers): [string, Ask] => [
      `${name} ${JSON.stringify(headers)}`,
      (id) =>
        call(
          route.method,
          route.path.replace('{id}', id).replace('{question_id}', questionId),
          bodies[name] === undefined ? undefined : asInsider(bodies[name]),
          headers,
        ),
    ]),
  );
  const idempotent = { 'idempotency-key': 'once' };
  const others: [string, Ask][] = [
    ['a status', (id) => call('PATCH', `/packets/${id}`, { status: 'completed' })],
    ['a wait', (id) => call('GET', `/packets/${id}?wait_seconds=60&until=created`)],
    ['a parent', (id) => call('POST', '/packets', between('insider', 'x', { parent_packet_id: id }))],
    ['a parent that is tried', (id) => call('POST', '/packets?dry_run=true', between('insider', 'x', { parent_packet_id: id }))],
    ['a parent in a batch', (id) => call('POST', '/packets/batch', { packets: [between('insider', 'x', { parent_packet_id: id })] })],
    ['a batch of claims', (id) => call('POST', '/packets/batch/claim', { packet_ids: [id], agent_id: 'insider' })],
    ['a batch of ends', (id) => call('POST', '/packets/batch/complete', { packet_ids: [id] })],
    ['a list of children', (id) => call('GET', `/packets?parent_packet_id=${id}`)],
    ['the audit log', (id) => call('GET', `/audit?packet_id=${id}`)],
    [
      'an answer in the console',
      (id) => call('POST', `//console/api/v1/packets/${id}/respond`, { response: 'Yes', responded_by: 'insider' }),
    ],
    ['a claim with an idempotency key', (id) => call('POST', `/packets/${id}/claim`, { agent_id: 'insider' }, idempotent)],
  ];
  const uris = ['', '/brief', '/history'].map((tail): [string, Ask] => [
    `packet://{id}${tail}`,
    (id) => mcp(service, 'resources/read', { uri: `packet://${id}${tail}` }, { key, agent: 'insider' }),
  ]);
  const more: Record<string, object> = {
    hand_over: { target_agent: 'x', summary: 'On' },
    update: { status: 'in_progress' },
    ask_human: { question: 'Yes?', timeout_seconds: 60 },
    fail: { reason: 'No' },
    renew_lease: { lease_token: 'lease_x' },
    wait_for_packet: { until: ['completed'], wait_seconds: 1 },
  };
  const byTool = Object.entries(tools).flatMap(([name, { input }]): [string, Ask][] => {
    const field = ['packet_id', 'parent_packet_id'].find((one) => one in input.properties);
    if (field === undefined) return [];
    const args = (id: string) => ({ ...more[name], [field]: id });
    return [[name, (id) => mcp(service, 'tools/call', { name, arguments: args(id) }, { key, agent: 'insider' })]];
  });
  const push = { url: 'http://127.0.0.1:9/push' };
  const byMethod = (
    [
      ['GetTask', (id) => ({ id })],
      ['CancelTask', (id) => ({ id })],
      ['SubscribeToTask', (id) => ({ id })],
      ['SendMessage', (id) => messageOf('Yes', { messageId: 'm', taskId: id })],
      ['SendMessage', (id) => messageOf('On', { messageId: 'n', contextId: id })],
      ['ListTasks', (id) => ({ contextId: id })],
      ['CreateTaskPushNotificationConfig', (id) => ({ taskId: id, id: 'mine', ...push })],
      ['GetTaskPushNotificationConfig', (id) => ({ taskId: id, id: 'mine' })],
      ['ListTaskPushNotificationConfigs', (id) => ({ taskId: id })],
      ['DeleteTaskPushNotificationConfig', (id) => ({ taskId: id, id: 'mine' })],
    ] as [string, (id: string) => object][]
  ).map(([method, params]): [string, Ask] => [method, (id) => a2a(service, method, params(id), { key, agent: 'insider' })]);
  const byRest = a2aRestRoutes.map(({ method, route: { method: verb, path } }): [string, Ask] => [
    `${verb} ${path}`,
    (id) => {
      const message = messageOf('Yes', { messageId: 'r', taskId: id });
      const body = verb !== 'POST' ? undefined : path.endsWith('/pushNotificationConfigs') ? { id: 'mine', ...push } : message;
      const named = path.replace('{id}', id).replace('{config_id}', 'mine');
      return call(verb, `/${named}${method === 'ListTasks' ? `?contextId=${id}` : ''}`, body, { 'a2a-version': '1.0' });
    },
  ]);
  // The ids of tasks carry those of packets, and clients can make them.
  const taskOf = (words: string[]) => ({ taskId: Buffer.from([...words, startOfTests].join(' ')).toString('base64url') });
  const byTask = ['tasks/get', 'tasks/cancel', 'tasks/update'].flatMap((method): [string, Ask][] =>
    [
      ['ask', questionId],
      ['wait', 'completed'],
    ].map(([kind, about]) => [
      `${method} ${kind}`,
      (id) => mcp(service, method, { ...taskOf([kind!, id, about!]), inputResponses: {} }, { key, agent: 'insider', tasks: true }),
    ]),
  );
  const listen: [string, Ask] = [
    'subscriptions/listen',
    (id) =>
      mcp(service, 'subscriptions/listen', { notifications: { resourceSubscriptions: [`packet://${id}`] } }, { key, agent: 'insider' }),
  ];
  return [...byRoute, ...others, ...uris, ...byTool, ...byMethod, ...byRest, ...byTask, listen];
}

for (const store of stores) {
  describe(`A key that sees its own, on ${store.name}`, () => {
    test("is answered for another's packet byte for byte as for an unknown one, on every way in and in every status [H680]", async () => {
      const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      const tenant = await withKeys(service);
      const seen = async (id: string) => (await service.call('GET', `/packets/${id}`, { key: tenant.key })).text;
      for (const status of ['created', 'claimed', 'awaiting_human', 'expired']) {
        const { id, questionId } = await hidden(service, tenant, status);
        const before = await seen(id);
        for (const [name, ask] of waysOf(service, tenant.own, questionId)) {
          const foreign = await ask(id);
          assert.equal(essence(foreign, id), essence(await ask(unknownId), unknownId), `${name} of a packet that is ${status}`);
          assert.ok(!foreign.text.includes(secret), name);
        }
        assert.equal(await seen(id), before);
      }
    });

    test('gets 404 on every route of a packet that is its own for another key', async () => {
      const service = await shareService(store);
      const tenant = await withKeys(service);
      const { id, link, questionId } = await hidden(service, tenant);
      const statuses = new Map<string, number>();
      for (const [name, route] of ofPackets) {
        const path = route.path.replace('{id}', id).replace('{question_id}', questionId);
        const body = bodies[name] === undefined ? {} : { body: asInsider(bodies[name]) };
        statuses.set(name, (await service.call(route.method, path, { key: tenant.own, ...body })).status);
      }
      assert.deepEqual(
        [...statuses].filter(([, status]) => status !== 404),
        [],
      );
      const revoke = (one: string) => service.call('DELETE', `/answer-links/${one}`, { key: tenant.own });
      const foreign = await revoke(link!);
      assert.equal(foreign.status, 404);
      assert.equal(essence(foreign, link!), essence(await revoke(unknownId), unknownId));
    });

    // Walks the operations of the API, as every-route.test.ts does with keys that see all.
    test('is shown nothing of what is not its own by any operation [H684]', async () => {
      const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      const tenant = await withKeys(service);
      const { key, own } = tenant;
      const { id, link } = await hidden(service, tenant);
      await must(await service.call('PUT', '/agents/stranger/contract', { key, body: { schema: {}, description: secret } }));
      await must(await service.call('PUT', '/agents/insider/contract', { key, body: { schema: {} } }));
      const mine = await tenant.post('/packets', between('insider', 'someone'), own);
      const queries: Record<string, string[]> = {
        searchPackets: [`?q=${secret}`, '?q=repairs'],
        listPackets: [
          '',
          '?view=full',
          '?status=awaiting_human',
          '?target_agent=stranger',
          '?order=asc',
          '?order=due',
          '?order=due&view=full',
          '?source_agent=outsider',
          '?limit=1',
        ],
      };
      const hiddenThings = [secret, id, link!, 'outsider', 'stranger'];
      for (const [name, route] of every) {
        for (const query of queries[name] ?? ['']) {
          const path =
            route.path
              .replace('{name}', 'stranger')
              .replace('{agent_id}', 'stranger')
              .replace(/\{\w+\}/g, unknownId) + query;
          const body = bodies[name] === undefined ? {} : { body: asInsider(bodies[name]) };
          const { text } = await service.call(route.method, path, { key: own, ...body });
          const asked = `${path} ${JSON.stringify(body)}`;
          for (const thing of hiddenThings)
            assert.ok(asked.includes(thing) || !text.includes(thing), `${name} ${query} shows ${thing}: ${text}`);
        }
      }
      const get = async (path: string) => (await service.call('GET', path, { key: own })).body;
      assert.equal((await get('/packets')).total, (await get('/packets')).packets.length);
      assert.ok((await get('/packets')).packets.some((packet: { id: string }) => packet.id === mine.id));
      assert.equal((await get(`/packets/search?q=${secret}`)).total, 0);
      assert.equal((await get('/packets/awaiting')).total, 0);
      const { agents, total } = await get('/agents');
      assert.deepEqual([agents.map(({ agent_id }: { agent_id: string }) => agent_id), total], [['insider'], 1]);
      assert.deepEqual(
        (await get('/contracts')).contracts.map(({ agent_id }: { agent_id: string }) => agent_id),
        ['insider'],
      );
      assert.equal((await get('/stats')).work.created, (await get('/packets')).total);
      for (const path of ['/audit', '/hooks', '/hooks/dlq', '/channels'])
        assert.equal((await service.call('GET', path, { key: own })).status, 403, path);
      assert.deepEqual(
        (await get('/keys')).map((one: { id: string }) => one.id),
        [tenant.ownId],
      );
      const tasks = (await a2a(service, 'ListTasks', {}, { key: own })).text;
      const found = (await mcp(service, 'tools/call', { name: 'find_packets', arguments: {} }, { key: own, agent: 'insider' })).text;
      for (const text of [tasks, found]) assert.ok(text.includes(mine.id) && !text.includes(secret), text);
    });

    test("is told nothing of another's schedule but that its name is taken, whatever the preconditions [H579]", async () => {
      const service = await shareService(store);
      const { key, own } = await withKeys(service);
      const schedule = (packet: object) => ({ cron: '0 9 * * *', timezone: 'UTC', packet });
      const put = (name: string, packet: object, by: string, headers = {}) =>
        service.call('PUT', `/schedules/${name}`, { key: by, body: schedule(packet), headers });
      await must(await put('nightly', between('outsider', 'stranger'), key));
      for (const headers of [{}, { 'if-match': '"9"' }, { 'if-match': '"1"' }, { 'if-match': '*' }, { 'if-none-match': '*' }]) {
        const refused = await put('nightly', between('insider', 'desk'), own, headers);
        assert.deepEqual([refused.status, refused.body.detail], [409, 'The name is taken.'], JSON.stringify(headers));
        assert.doesNotMatch(`${refused.text}${JSON.stringify(refused.headers)}`, /outsider|stranger|"etag"/);
        const [foreign, unknown] = await Promise.all(
          ['nightly', 'unknown'].map((name) => service.call('DELETE', `/schedules/${name}`, { key: own, headers })),
        );
        assert.equal(foreign!.status, 404);
        assert.equal(essence(foreign!, 'nightly'), essence(unknown!, 'unknown'));
      }
      await must(await put('for-desk', between('outsider', 'desk'), key));
      assert.equal((await put('for-desk', between('insider', 'desk'), own)).status, 403, 'it sees that one');
      assert.equal((await service.call('GET', '/schedules/nightly', { key })).body.version, 1);
      await must(await service.call('DELETE', '/schedules/nightly', { key, headers: { 'if-match': '"1"' } }));
    });

    test("sees the standing approvals of its agents and of its person, and of others' delegations no reason [H580]", async () => {
      const service = await shareService(store);
      const { id: tenant_id, key, own, post } = await withKeys(service);
      const make = async (rights: object) =>
        (await must(await service.call('POST', '/keys', { body: { name: 'k', tenant_id, ...rights } }))).key as string;
      const dana = await make({ responder: 'Dana' });
      const ownOfDana = await make({ agents: ['d'], sees: 'own', responder: 'Dana' });
      const askers = { outsider: await make({ agents: ['outsider'] }), insider: await make({ agents: ['insider'] }) };
      const rules = [{ then: { ask: [{ from: ['Dana'] }] } }];
      const policy = { match: { tools: ['refund'] }, rules, remember: { scope: 'tool', max_seconds: 86400 } };
      await must(await service.call('PUT', '/policies/p', { key, body: policy }));
      const approve = async (id: 'outsider' | 'insider', index: number) => {
        const action = { tool: 'refund', arguments: { index, about: secret } };
        const asked = await post('/approvals', { agent: { id, name: id, framework: 'test' }, action }, askers[id]);
        const answer = { decision: 'approve', responded_by: 'Dana', remember: { scope: 'call', seconds: 3600 } };
        await post(`/packets/${asked.id}/respond`, answer, dana);
      };
      for (let index = 0; index < 3; index += 1) for (const agent of ['outsider', 'insider'] as const) await approve(agent, index);
      const list = async (by: string, query = '') => must(await service.call('GET', `/standing-approvals${query}`, { key: by }));
      const seen = (await list(own)).standing_approvals as { id: string; agent_id: string }[];
      assert.deepEqual([...new Set(seen.map(({ agent_id }) => agent_id))], ['insider']);
      const paged: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: { standing_approvals: { id: string }[]; next_cursor: string | null } = await list(
          own,
          `?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`,
        );
        paged.push(...page.standing_approvals.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      assert.deepEqual(
        [paged, seen.length, (await list(key)).standing_approvals.length],
        [seen.map(({ id }) => id), 3, 6],
        'in pages, and by a key that sees all',
      );
      assert.equal((await list(ownOfDana)).standing_approvals.length, 6, 'its person gave them');
      const foreign = (await list(key)).standing_approvals.find(({ agent_id }: { agent_id: string }) => agent_id === 'outsider').id;
      const remove = (id: string, by: string) => service.call('DELETE', `/standing-approvals/${id}`, { key: by });
      assert.equal(essence(await remove(foreign, own), foreign), essence(await remove(unknownId, own), unknownId));
      assert.equal((await remove(seen[0]!.id, own)).status, 403);
      assert.equal((await remove(foreign, ownOfDana)).status, 204);

      await must(
        await service.call('PUT', '/delegations/Dana', { key, body: { to: 'Eve', until: '2027-01-01T00:00:00Z', reason: secret } }),
      );
      for (const [by, reason] of [
        [own, null],
        [key, secret],
        [ownOfDana, secret],
      ] as const) {
        const one = await must(await service.call('GET', '/delegations/Dana', { key: by }));
        const { delegations } = await must(await service.call('GET', '/delegations', { key: by }));
        assert.deepEqual([one.to, one.reason, delegations[0].reason], ['Eve', reason, reason]);
      }
    });

    test('sees and changes only its own push notification configurations of a task [H581]', async () => {
      const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      const { key, own, ownId, post } = await withKeys(service);
      const bob = (await post('/keys', { name: 'bob', agents: ['bob'], sees: 'own' })).key;
      const { id: taskId } = await post('/packets', between('insider', 'bob'));
      const call = async (by: string, method: string, params: object = {}) =>
        (await a2a(service, method, { taskId, ...params }, { key: by })).body;
      const put = (by: string, id: string, path: string) =>
        call(by, 'CreateTaskPushNotificationConfig', { id, url: `http://127.0.0.1:9/${path}`, token: 'a-token-for-tests-0123456789' });
      const list = async (by: string) =>
        ((await call(by, 'ListTaskPushNotificationConfigs')).result.configs ?? []).map(({ url }: { url: string }) => url.slice(-6));
      assert.equal((await put(own, 'mine', 'insids')).error, undefined);
      assert.deepEqual(await list(bob), []);
      assert.match(JSON.stringify((await put(bob, 'mine', 'bobbob')).error), /The id is taken/);
      assert.notEqual((await call(bob, 'GetTaskPushNotificationConfig', { id: 'mine' })).error, undefined);
      assert.equal((await call(bob, 'DeleteTaskPushNotificationConfig', { id: 'mine' })).error, undefined, 'as for an unknown one');
      assert.equal((await put(bob, 'other', 'bobbob')).error, undefined);
      assert.deepEqual([await list(own), await list(bob), await list(key)], [['insids'], ['bobbob'], ['insids', 'bobbob']]);
      const next = (await post(`/keys/${ownId}/rotate`, {})).key;
      assert.deepEqual(await list(next), ['insids'], 'the key that replaces it');
      assert.equal((await put(next, 'mine', 'change')).error, undefined);
      assert.equal((await put(key, 'other', 'allall')).error, undefined);
      assert.deepEqual(await list(key), ['change', 'allall']);
      assert.equal((await call(next, 'DeleteTaskPushNotificationConfig', { id: 'mine' })).error, undefined);
      assert.deepEqual(await list(key), ['allall']);
    });

    test('shares no read and no cursor with a key that sees all', async () => {
      const service = await shareService(store);
      const tenant = await withKeys(service);
      await hidden(service, tenant);
      await tenant.post('/packets', between('insider', 'x'));
      const lists = await Promise.all(
        [tenant.key, tenant.own, tenant.key, tenant.own].map((key) => service.call('GET', '/packets?limit=1', { key })),
      );
      assert.deepEqual(
        lists.map(({ body }) => body.total),
        [2, 1, 2, 1],
      );
      const { next_cursor } = lists[0]!.body;
      assert.equal((await service.call('GET', `/packets?limit=1&cursor=${next_cursor}`, { key: tenant.own })).status, 400);
    });

    test('sees and changes what its agents send, receive or hold, and the packets for its queues [H680]', async () => {
      const service = await shareService(store);
      const { key, own, post } = await withKeys(service);
      const sent = await post('/packets', between('insider', 'x'));
      const received = await post('/packets', between('x', 'insider'));
      const queued = await post('/packets', between('x', 'desk'));
      const held = await post('/packets', between('x', 'y'));
      const status = async (id: string) => (await service.call('GET', `/packets/${id}`, { key: own })).status;
      assert.equal(await status(held.id), 404);
      await post(`/packets/${held.id}/claim`, { agent_id: 'insider' });
      for (const { id } of [sent, received, queued, held]) {
        assert.equal(await status(id), 200);
        for (const part of ['history', 'brief', 'questions'])
          assert.equal((await service.call('GET', `/packets/${id}/${part}`, { key: own })).status, 200, part);
      }
      const { body } = await service.call('GET', '/packets?view=full', { key: own });
      assert.equal(body.total, 4);
      await must(await service.call('PATCH', `/packets/${held.id}`, { key: own, body: { status: 'completed' } }));
      // A packet that goes to others is theirs.
      const metadata = { target_agent: { id: 'y', name: 'y', framework: 'test' } };
      await must(await service.call('PATCH', `/packets/${received.id}`, { key, body: { metadata } }));
      assert.equal(await status(received.id), 404);
    });

    test('claims the next packet of its queues only, and is told their names [H681]', async () => {
      const service = await shareService(store);
      const { own, post } = await withKeys(service);
      await post('/packets', between('x', 'y'));
      const next = (body: object) => service.call('POST', '/packets/claim-next', { key: own, body: { agent_id: 'insider', ...body } });
      for (const target_agent of ['y', '*']) {
        const { status, body } = await next({ target_agent });
        assert.deepEqual([status, body.code, body.field], [403, 'FORBIDDEN', 'target_agent']);
        assert.match(body.detail, /queues: insider, desk/);
      }
      assert.equal((await next({})).status, 204);
      assert.equal((await next({ target_agent: 'desk' })).status, 204);
      const { id } = await post('/packets', between('x', 'desk'));
      assert.equal((await next({ target_agent: 'desk' })).body.id, id);
    });

    test("reads the briefs of its packets' ancestors, and not the ancestors", async () => {
      const service = await shareService(store);
      const { own, post } = await withKeys(service);
      const parent = await post('/packets', between('x', 'y', { context: { summary: 'Find the cause' } }));
      const child = await post('/packets', between('y', 'insider', { parent_packet_id: parent.id }));
      const brief = await service.call('GET', `/packets/${child.id}/brief`, { key: own });
      assert.match(brief.text, /Find the cause/);
      for (const tail of ['', '/brief', '/history'])
        assert.equal((await service.call('GET', `/packets/${parent.id}${tail}`, { key: own })).status, 404, tail);
    });

    test("repeats no answer about a packet that has become another's [H682]", async () => {
      const service = await shareService(store);
      const { key, own, post } = await withKeys(service);
      const { id } = await post('/packets', between('x', 'insider'));
      const call = (path: string, body: object, name: string) =>
        service.call('POST', path, { key: own, body, headers: { 'idempotency-key': name } });
      const claim = () => call(`/packets/${id}/claim`, { agent_id: 'insider' }, 'claim');
      assert.equal((await claim()).status, 200);
      assert.equal((await claim()).headers['idempotency-replayed'], 'true');
      const { id: queued } = await post('/packets', between('x', 'desk'));
      const next = () => call('/packets/claim-next', { agent_id: 'insider', target_agent: 'desk' }, 'next');
      assert.equal((await next()).body.id, queued);
      for (const one of [id, queued]) {
        await must(await service.call('POST', `/packets/${one}/release`, { key, headers: { 'x-agent-id': 'insider' } }));
        const metadata = { target_agent: { id: 'y', name: 'y', framework: 'test' } };
        await must(await service.call('PATCH', `/packets/${one}`, { key, body: { metadata } }));
        await post(`/packets/${one}/claim`, { agent_id: 'y' });
      }
      for (const again of [await claim(), await next()]) assert.deepEqual([again.status, again.body.code], [404, 'NOT_FOUND']);
    });

    test('is wakened and told by streams only of what it sees', async (t) => {
      const service = await startService(t, { store });
      const address = await service.handoff.start();
      const { own, post } = await withKeys(service);
      const headers = { 'x-api-key': own };
      const hiddenOne = await post('/packets', between('x', 'y', { context: { summary: secret } }));
      const past = await post('/packets', between('x', 'insider'));
      const events = await listenTo(t, address, '', headers);
      const named = await listenTo(t, address, `?subscribe=packet:${hiddenOne.id}&subscribe=agent:y&subscribe=status:created`, headers);
      const socket = await openSocket(address, '', headers);
      t.after(() => socket.socket.close());
      await post('/packets', between('x', 'y', { context: { summary: secret } }));
      const { id } = await post('/packets', between('x', 'insider'));
      for (const stream of [events, named]) assert.equal((await stream.events.next()).data.packet_id, id);
      const message = await nextEvent(socket);
      assert.equal(message.packet_id, id);
      // A replay from the beginning has what it sees, and nothing else.
      const last = events.events.all.at(-1)!.id!;
      const from = `1-${last.split('-')[1]}`;
      const replayed = await listenTo(t, address, `?last_event_id=${from}`, headers);
      assert.deepEqual(
        (await replayed.events.take(2)).map(({ data }) => data.packet_id),
        [past.id, id],
      );
      for (const stream of [events, named, replayed]) assert.ok(!stream.text().includes(secret));
    });
  });
}

/** The next message that is an event. */
async function nextEvent({ messages }: Awaited<ReturnType<typeof openSocket>>): Promise<{ packet_id: string }> {
  for (;;) {
    const message = await messages.next();
    if (message.packet_id !== undefined) return message;
  }
}

for (const store of stores)
  describe(`POST /keys with sees, on ${store.name}`, () => {
    test('needs agents, gives everything but manage, and refuses manage, admin keys, and queues without it [H683]', async () => {
      const service = await shareService(store);
      const make = (body: object) => service.call('POST', '/keys', { body: { name: 'k', ...body } });
      const { body } = await make({ sees: 'own', agents: ['a'] });
      assert.deepEqual([body.sees, body.queues, body.scopes], ['own', ['a'], ['read', 'work', 'respond']]);
      for (const [field, request] of [
        ['agents', { sees: 'own' }],
        ['scopes', { sees: 'own', agents: ['a'], scopes: ['read', 'manage'] }],
        ['queues', { agents: ['a'], queues: ['b'] }],
        ['queues', { sees: 'all', queues: ['b'] }],
        ['sees', { sees: 'own', admin: true }],
        ['sees', { sees: 'some' }],
      ] as const) {
        const refused = await make(request);
        assert.deepEqual([refused.status, refused.body.field], [400, field], refused.text);
      }
      const all = await make({ sees: 'all' });
      assert.deepEqual([all.body.sees, all.body.queues], ['all', null]);
    });

    test('is kept by the key that replaces it', async () => {
      const service = await shareService(store);
      const { key, own, ownId } = await withKeys(service);
      const rotated = await must(await service.call('POST', `/keys/${ownId}/rotate`, { key }));
      assert.deepEqual([rotated.sees, rotated.queues], ['own', ['desk']]);
      const { id } = await must(await service.call('POST', '/packets', { key, body: between('x', 'y') }));
      for (const one of [own, rotated.key]) assert.equal((await service.call('GET', `/packets/${id}`, { key: one })).status, 404);
      const self = await must(await service.call('GET', '/keys/self', { key: rotated.key }));
      assert.deepEqual([self.sees, self.queues], ['own', ['desk']]);
    });
  });
