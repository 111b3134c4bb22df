import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { commands } from '../../../src/handoff/cli/commands.ts';
import { Writer } from '../../../src/handoff/cli/output/writer.ts';
import { runCli } from '../../../src/handoff/cli/program.ts';
import type { Handlers } from '../../../src/handoff/mcp/server.ts';
import { tools } from '../../../src/handoff/mcp/tools.ts';
import { a2aApi, a2aRestRoutes } from '../../../src/handoff/model/a2a.ts';
import { answerPageRoutes } from '../../../src/handoff/model/answer-link.ts';
import { prefixesOf, routes } from '../../../src/handoff/model/api.ts';
import { respondInConsole } from '../../../src/handoff/model/console.ts';
import { mcpApi } from '../../../src/handoff/model/mcp.ts';
import type { HandoffRoute } from '../../../src/handoff/model/route.ts';
import { streamRoutes } from '../../../src/handoff/model/stream.ts';
import { acts } from '../../../src/handoff/rules/rights.ts';
import type { Route } from '../../../src/kit/route.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { asPerson as bySession, cookiesOf, dana, publicUrl, signIn, signInSettings, startIssuer } from '../../support/issuer.ts';
import { question, unknownId } from '../../support/life.ts';
import { mcp } from '../../support/mcp.ts';
import {
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  TestClock,
  type TestService,
} from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** The scopes that suffice for each act, written by hand. A new route, tool or method has to be added here. */
const rightOfRoute: Readonly<Record<string, string>> = {
  ...named(
    'read',
    'listPackets listAwaiting searchPackets getPacket packetHistory packetBrief listAgents getStats listAudit events socket listQuestions getQuestion',
  ),
  ...named('work', 'createPacket patchPacket deletePacket claimPacket chainPacket batchCreate batchClaim batchComplete claimNext'),
  ...named('work', 'askQuestion withdrawQuestion releasePacket renewLease endLease'),
  ...named('respond', 'respondPacket respondInConsole createAnswerLink deleteAnswerLink'),
  ...named('read|respond', 'listAnswerLinks'),
  ...named('read|work', 'getContract listContracts'),
  ...named('manage|work', 'publishContract deleteContract'),
  ...named('work', 'askApproval startExecution endExecution'),
  ...named('read', 'getExecution'),
  ...named('erase', 'createErasure listErasures getErasure'),
  ...named('read|manage', 'getPolicy listPolicies tryPolicies replayPolicy getGroup listGroups'),
  ...named('manage', 'putPolicy deletePolicy putGroup deleteGroup'),
  ...named('read|respond', 'getDelegation listDelegations listStandingApprovals'),
  ...named('manage|respond', 'putDelegation deleteDelegation deleteStandingApproval'),
  ...named('work', 'putSchedule deleteSchedule runSchedule'),
  ...named('read|work', 'getSchedule listSchedules nextTimes'),
  ...named('manage', 'auditHead auditKeys exportAudit'),
  ...named('manage', 'createWebhook patchWebhook deleteWebhook pingWebhook replayDeadLetter retryAll'),
  ...named('manage', 'createChannel patchChannel deleteChannel testChannel replayChannelDelivery createKey rotateKey deleteKey'),
  ...named('read|manage', 'listWebhooks listDeliveries getDelivery listDeadLetters listChannels getChannel listChannelDeliveries listKeys'),
  ...named('admin', 'listTenantKeys createTenant listTenants getTenant patchTenant deleteTenant'),
  ...named('manage', 'listPeople suspendPerson resumePerson releasePerson'),
  ...named('any', 'getOwnKey listSessions deleteSession'),
  ...named('public', 'health ready metrics'),
  ...named('link', 'showAnswerPage sendAnswer'),
};

const rightOfTool: Readonly<Record<string, string>> = {
  ...named('work', 'hand_over claim_next claim renew_lease release update ask_human request_approval complete fail'),
  ...named('read', 'get_answer wait_for_packet find_packets get_packet get_brief get_history'),
  ...named('read|work', 'get_contract'),
};

const rightOfMethod: Readonly<Record<string, string>> = {
  ...named('work', 'SendMessage SendStreamingMessage CancelTask CreateTaskPushNotificationConfig DeleteTaskPushNotificationConfig'),
  ...named('read', 'GetTask ListTasks SubscribeToTask ListTaskPushNotificationConfigs GetTaskPushNotificationConfig GetExtendedAgentCard'),
};

/** The methods of MCP; `tool`: what the tool needs. */
const rightOfMcp: Readonly<Record<string, string>> = {
  'tools/call': 'tool',
  ...named('read', 'resources/read tasks/get events/poll'),
  ...named('work', 'tasks/cancel events/subscribe events/unsubscribe'),
  ...named('any', 'tools/list resources/list resources/templates/list prompts/list prompts/get tasks/update events/list'),
};

const rightOfAct: Readonly<Record<keyof typeof acts, string>> = {
  ...{
    listen: 'read',
    listPushes: 'read',
    pollEvents: 'read',
    subscribe: 'work',
    unsubscribe: 'work',
    sendPush: 'read',
    setPush: 'work',
    removePush: 'work',
    runSchedule: 'work',
    answerByLink: 'respond',
    actForPerson: 'manage',
  },
};

/** The right that a command of `service-cli` needs; `none` for those that send the service no request with a key. */
const rightOfCommand: Readonly<Record<string, string>> = {
  ...named('read', 'list get brief search awaiting watch', 'packets '),
  ...named('read', 'history audit agents stats'),
  ...named('read|respond', 'answer-links', 'packets '),
  ...named('work', 'create claim chain next update complete fail ask delete release renew', 'packets '),
  ...named('respond', 'answer-link revoke-link', 'packets '),
  ...named('respond', 'respond'),
  ...named('read|manage', 'list deliveries delivery dlq', 'hooks '),
  ...named('manage', 'create update ping delete replay retry-all', 'hooks '),
  ...named('read|manage', 'list', 'channels '),
  ...named('manage', 'create test delete', 'channels '),
  ...named('read|manage', 'list', 'keys '),
  ...named('manage', 'create rotate delete', 'keys '),
  ...named('admin', 'list create get update delete keys', 'tenants '),
  ...named('work', 'ask', 'approvals '),
  ...named('read', 'list', 'approvals '),
  ...named('respond', 'decide', 'approvals '),
  ...named('read|manage', 'try list get replay', 'policies '),
  ...named('read|respond', 'list', 'standing '),
  ...named('manage|respond', 'remove', 'standing '),
  ...named('manage', 'set remove', 'policies '),
  ...named('read|manage', 'list get', 'groups '),
  ...named('manage', 'set remove', 'groups '),
  ...named('read|respond', 'list', 'delegations '),
  ...named('manage|respond', 'set remove', 'delegations '),
  ...named('read|work', 'list get next', 'schedules '),
  ...named('work', 'set remove run', 'schedules '),
  // The tools of `mcp` send the requests of the tools above; the others work on files, or on the database itself.
  ...named('read|work', 'get', 'agents contract '),
  ...named('manage|work', 'set remove', 'agents contract '),
  ...named('work', 'check', 'agents contract '),
  ...named('manage', 'export', 'audit '),
  ...named('none', 'verify', 'audit '),
  ...named('none', 'approve-hook serve mcp admin-key storage backup export import open'),
};

/** A file for the commands that read one. */
const contractFile = fileURLToPath(new URL('../../../examples/contract.json', import.meta.url));

/** The options without which a command sends no request. */
const optionsOf: Readonly<Record<string, string>> = {
  ...{ 'packets create': '--source-id a --target-id b --summary s', 'packets chain': '--source-id a --target-id b --summary s' },
  ...{ 'packets claim': '--agent a', 'packets next': '--agent a', 'packets update': '--summary s' },
  ...{ 'packets ask': '--question q --reason r', 'packets renew': '--token t', respond: '--by dana --response Yes' },
  ...{ 'hooks create': '--url https://example.com --secret a-secret-of-16-characters', 'hooks update': '--active' },
  ...{ 'channels create': '--kind slack --target https://example.com', 'keys create': '--name k', 'tenants create': '--name t' },
  'tenants update': '--name t',
  ...{ 'approvals ask': '--agent a --tool t', 'approvals decide': '--decision approve --by dana', 'policies try': '--agent a --tool t' },
  ...{ 'groups set': '--member a', 'delegations set': '--to eli --until 2099-01-01' },
};

/** Pages that anyone may get, and what they consist of. */
const pages = [
  ...['/', '/console', '/console*', '/docs', '/redoc', '/openapi.json', '/api/v1/docs', '/api/v1/redoc', '/api/v1/openapi.json'],
  ...['swagger-ui.css', 'swagger-ui-bundle.js', 'redoc.standalone.js', 'redoc.js', 'docs.js'].flatMap((name) => [
    `/docs/assets/${name}`,
    `/api/v1/docs/assets/${name}`,
  ]),
];

function named(right: string, names: string, prefix = ''): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [prefix + name, right]));
}

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

/** The routes that need a right, by the name in their table. */
const all: readonly (Route & HandoffRoute)[] = Object.values({ ...routes, ...streamRoutes, ...answerPageRoutes, respondInConsole });
const addressOf = (route: Route, id = unknownId) =>
  `/${prefixesOf(route)[0]}${route.path}`.replace(/\{config_id\}/g, 'mine').replace(/\{\w+\}/g, id);

/** The methods and paths that the server answers, from the tree of its router. */
function mounted(service: TestService): string[] {
  const parts: string[] = [];
  return service.handoff.app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => {
      const [, indent, part, methods] = /^([│ ]*)[└├]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line)!;
      parts.splice(indent!.length / 4, Number.POSITIVE_INFINITY, part!);
      const path = parts
        .join('')
        .replaceAll('([^:/]+)', '')
        .replace(/\/:(\w+)/g, '/{$1}')
        .replace('::', ':');
      return (methods ?? '').split(', ').flatMap((method) => (method === '' || method === 'HEAD' ? [] : [`${method} ${path}`]));
    });
}

test('every route, tool, method, act and command is in the tables of this file, with the right that it declares', async (t) => {
  const declared = all.map(({ id, access, alternative }) => [id, alternative === undefined ? access : `${access}|${alternative}`]);
  assert.deepEqual(Object.fromEntries(declared), rightOfRoute);
  assert.deepEqual(sorted(Object.keys(tools)), sorted(Object.keys(rightOfTool)));
  assert.deepEqual(sorted(a2aRestRoutes.map(({ method }) => method)), sorted(Object.keys(rightOfMethod)));
  assert.deepEqual(Object.fromEntries(Object.entries(acts).map(([name, { access }]) => [name, access])), rightOfAct);
  assert.deepEqual(sorted(commands.map(({ name }) => name)), sorted(Object.keys(rightOfCommand)));

  let methods: string[] = [];
  const handlers = (ours: Handlers) => {
    methods = Object.keys(ours);
    return ours;
  };
  const service = await startService(t, { dependencies: { mcpExtension: { capabilities: {}, handlers } } });
  await mcp(service, 'tools/list');
  assert.deepEqual(sorted(methods), sorted(Object.keys(rightOfMcp)));
  await service.handoff.app.ready();
  const known = [...all, ...Object.values({ ...a2aApi.routes, ...mcpApi.routes })].flatMap((route) =>
    prefixesOf(route).flatMap((prefix) => {
      const mount = `${route.method} ${prefix}${route.path}`;
      return 'forPeople' in route && route.forPeople ? [mount, `${mount}/`] : [mount];
    }),
  );
  assert.deepEqual(sorted(mounted(service)), sorted([...known, ...pages.map((path) => `GET ${path}`)]));
});

/** A key of the tenant with these rights. */
async function keyWith(service: TestService, key: string, rights: object): Promise<string> {
  const { body, text } = await service.call('POST', '/keys', { key, body: { name: 'restricted', ...rights } });
  assert.ok(body.key, text);
  return body.key;
}

/** A key of the tenant with all scopes but these. */
const keyWithout = (service: TestService, key: string, right: string) =>
  keyWith(service, key, { scopes: ['read', 'work', 'respond', 'manage'].filter((scope) => !right.split('|').includes(scope)) });

/** Asserts a refusal by the rules on rights: of the API, of AIP-193, of JSON-RPC, or the result of a tool. */
function refused({ status, body, text }: TestAnswer, pattern: RegExp, about: string) {
  // A permission prompt is told of a refusal as of any other denial.
  const isDenied = body?.result?.structuredContent?.behavior === 'deny';
  const isError = body?.error !== undefined || body?.result?.isError === true || isDenied;
  assert.ok(isError ? status === 200 || status === 403 : status === 403, `${about}: ${status} ${text}`);
  assert.match(text, pattern, about);
}

/** The arguments of a call of a tool that are enough to reach its operation. */
function argumentsOf(name: string, id: string, more: object = {}) {
  const call = { tool_name: 't', input: {} };
  const given = { packet_id: id, summary: 'x', target_agent: 'b', question: 'q?', reason: 'r', statuses: ['completed'], ...call, ...more };
  const known = tools[name as keyof typeof tools].input.properties;
  return { name, arguments: Object.fromEntries(Object.entries(given).filter(([field]) => field in known)) };
}

/** The parameters of a method of A2A, and a request of its other binding. */
const config = { id: 'mine', url: 'https://example.com/', token: 'a-token-for-tests-0123456789' };
const paramsOf = (method: string, id: string) =>
  /^Send/.test(method)
    ? messageOf('x')
    : /^Create/.test(method)
      ? { ...config, taskId: id }
      : /Config/.test(method)
        ? { taskId: id, id: 'mine' }
        : { id };
const bodyOf = (route: Route, method: string) =>
  route.method !== 'POST' ? {} : { body: /^Send/.test(method) ? messageOf('x') : /^Create/.test(method) ? config : {} };

for (const store of stores) {
  describe(`A key without the right, on ${store.name}`, () => {
    test('is refused by every route with the name of the scope, and a key with that scope alone is admitted [H193]', async () => {
      const service = await shareService(store);
      const { id: tenant_id, key } = await newTenant(service, { max_api_keys: 20 });
      const scopes = ['read', 'work', 'respond', 'manage', 'erase'];
      const only = new Map<string, string>();
      const without = new Map<string, string>();
      // A contract may be changed with the scope work by a key for its agent, a delegation with respond by a key of its person.
      const own: Readonly<Record<string, object>> = { work: { agents: [unknownId] }, respond: { responder: unknownId } };
      // Only an admin key can give the scope erase, which no key has by default.
      for (const scope of scopes) only.set(scope, await keyWith(service, service.key, { scopes: [scope], tenant_id, ...own[scope] }));
      for (const route of all) {
        const right = rightOfRoute[route.id]!;
        const sufficient = right.split('|');
        if (!scopes.includes(sufficient[0]!)) continue;
        if (!without.has(right)) without.set(right, await keyWithout(service, key, right));
        const about = `${route.method} ${route.path}`;
        const answer = await service.call(route.method, addressOf(route), { key: without.get(right)! });
        assert.deepEqual([answer.status, answer.body.code], [403, 'FORBIDDEN'], about);
        assert.match(answer.body.detail, new RegExp(`needs a key with the scope ${sufficient.join(' or ')};`), about);
        // An admitted request for events does not end.
        if (route.id === 'events') continue;
        for (const scope of sufficient)
          assert.notEqual(
            (await service.call(route.method, addressOf(route), { key: only.get(scope)! })).status,
            403,
            `${about} with ${scope}`,
          );
      }
      // Without a path there is nothing to have a scope for.
      assert.equal((await service.call('GET', '/nothing', { key: only.get('respond')! })).status, 404);
    });

    test('is refused by every tool of MCP and every method of A2A, in both of its bindings, and changes nothing', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { max_api_keys: 10 });
      const { id } = await createPacket(service, { hitl: question }, key);
      const before = (await service.call('GET', `/packets/${id}`, { key })).body;
      const without: Record<string, string> = {
        read: await keyWithout(service, key, 'read'),
        work: await keyWithout(service, key, 'work'),
        'read|work': await keyWithout(service, key, 'read|work'),
      };
      const headers = { 'a2a-version': '1.0' };
      for (const [name, right] of Object.entries(rightOfTool)) {
        const call = argumentsOf(name, id, { lease_token: 't' });
        // A tool that needs another right is either not listed or refused.
        refused(await mcp(service, 'tools/call', call, { key: without[right]! }), /scope|is no tool|not found/i, name);
      }
      for (const [method, right] of Object.entries(rightOfMethod))
        refused(await a2a(service, method, paramsOf(method, id), { key: without[right]! }), new RegExp(`scope ${right}`), method);
      for (const { method, route } of a2aRestRoutes) {
        const right = rightOfMethod[method]!;
        const request = { key: without[right]!, headers, ...bodyOf(route, method) };
        const answer = await service.call(route.method, addressOf(route, id), request);
        refused(answer, new RegExp(`scope ${right}`), `${route.method} ${route.path}`);
        assert.equal(answer.body.error.status, 'PERMISSION_DENIED', answer.text);
      }
      assert.deepEqual((await service.call('GET', `/packets/${id}`, { key })).body, before);
      assert.equal((await service.call('GET', '/packets', { key })).body.total, 1);
    });

    test('is refused by every method of MCP, as a fault of the caller, and listed the tools that it may call', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { max_api_keys: 20 });
      const { id } = await createPacket(service, {}, key);
      const asked = await mcp(service, 'tools/call', argumentsOf('ask_human', id), { key, tasks: true });
      const { taskId } = asked.body.result;
      const of: Readonly<Record<string, readonly object[]>> = {
        'resources/read': [`packet://${id}`, `packet://${id}/brief`, `packet://${id}/history`, 'inbox://resolver'].map((uri) => ({ uri })),
        'tasks/get': [{ taskId }],
        'tasks/cancel': [{ taskId }],
        'events/poll': [{ name: 'packet.ended' }],
        'events/subscribe': [{ name: 'packet.ended', delivery: { url: 'https://127.0.0.1/', secret: 'whsec_' } }],
        'events/unsubscribe': [{ name: 'packet.ended', delivery: { url: 'https://127.0.0.1/' } }],
      };
      for (const [method, right] of Object.entries(rightOfMcp)) {
        if (!['read', 'work'].includes(right)) continue;
        for (const params of of[method]!) {
          const own = { key: await keyWithout(service, key, right), tasks: true };
          const { body, text } = await mcp(service, method, params as Record<string, unknown>, own);
          // The extension has a code of its own.
          const code = method.startsWith('events/') ? -32012 : -32602;
          assert.deepEqual([body.error?.code, body.error?.data?.code], [code, 'FORBIDDEN'], `${method}: ${text}`);
          assert.match(text, new RegExp(`scope ${right}`));
        }
      }
      assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');
      for (const [right, missing] of [
        ['read', 'work'],
        ['work', 'read'],
      ] as const) {
        const { body } = await mcp(service, 'tools/list', {}, { key: await keyWithout(service, key, missing) });
        const names = body.result.tools.map(({ name }: { name: string }) => name);
        assert.deepEqual(sorted(names), sorted(Object.keys(rightOfTool).filter((name) => rightOfTool[name]!.split('|').includes(right))));
      }
    });

    test('without the scope respond is refused each way to an answer: REST, the console, links, A2A', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { max_api_keys: 10 });
      const { id } = await createPacket(service, { hitl: question }, key);
      await service.call('PATCH', `/packets/${id}`, { key, body: { status: 'awaiting_human' } });
      const other = await keyWithout(service, key, 'respond');
      const body = { response: 'Yes', responded_by: 'dana' };
      for (const path of [`/packets/${id}/respond`, `//console/api/v1/packets/${id}/respond`, `/packets/${id}/answer-links`]) {
        const answer = await service.call('POST', path, { key: other, body: path.endsWith('respond') ? body : {} });
        assert.equal(answer.status, 403, answer.text);
        assert.match(answer.body.detail, /scope respond/);
      }
      const message = messageOf('Yes', { taskId: id });
      refused(await a2a(service, 'SendMessage', message, { key: other }), /scope respond/, 'JSON-RPC');
      const request = { key: other, headers: { 'a2a-version': '1.0' }, body: messageOf('Yes', { taskId: id }) };
      refused(await service.call('POST', '//a2a/message:send', request), /scope respond/, 'HTTP+JSON');
      assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');
    });
  });

  describe(`A key of other agents or another person, on ${store.name}`, () => {
    test('acts as no other agent: each route, tool and method refuses the agent that the request names', async () => {
      const service = await shareService(store);
      const { id: tenant_id, key: first } = await newTenant(service, { max_api_keys: 10 });
      const { id } = await createPacket(service, { hitl: question }, first);
      const scopes = ['read', 'work', 'respond', 'manage', 'erase'];
      const key = await keyWith(service, service.key, { agents: ['helper'], scopes, tenant_id });
      const before = (await service.call('GET', `/packets/${id}`, { key: first })).body;
      const other = { 'x-agent-id': 'other' };
      const pattern = /may not act as other/;
      for (const route of all) {
        if (['public', 'link', 'admin'].includes(route.access)) continue;
        const answer = await service.call(route.method, addressOf(route, id), { key, headers: other });
        refused(answer, pattern, `${route.method} ${route.path}`);
      }
      for (const { method, route } of a2aRestRoutes) {
        const request = { key, headers: { ...other, 'a2a-version': '1.0' }, ...bodyOf(route, method) };
        refused(await service.call(route.method, addressOf(route, id), request), pattern, `${route.method} ${route.path}`);
      }
      for (const method of Object.keys(rightOfMethod))
        refused(await a2a(service, method, paramsOf(method, id), { key, agent: 'other' }), pattern, method);
      for (const name of Object.keys(rightOfTool)) {
        const call = argumentsOf(name, id, { lease_token: 't', agent_id: 'other' });
        const { agent_id, ...unnamed } = call.arguments;
        refused(await mcp(service, 'tools/call', { name, arguments: unnamed }, { key, agent: 'other' }), pattern, name);
        const inQuery = { key, agent: null, query: '?agent_id=other' };
        refused(await mcp(service, 'tools/call', { name, arguments: unnamed }, inQuery), pattern, name);
        if (agent_id !== undefined) refused(await mcp(service, 'tools/call', call, { key, agent: null }), pattern, name);
      }
      for (const [name, body] of Object.entries(asAgent)) {
        const answer = await service.call(
          routes[name as keyof typeof asAgent].method,
          addressOf(routes[name as keyof typeof asAgent], id),
          {
            key,
            body: body(id),
          },
        );
        if (name === 'batchCreate') assert.deepEqual([answer.body.created, answer.body.errors[0].code], [[], 'FORBIDDEN'], answer.text);
        else refused(answer, pattern, name);
      }
      assert.deepEqual((await service.call('GET', `/packets/${id}`, { key: first })).body, before);
      assert.equal((await service.call('GET', '/packets', { key: first })).body.total, 1);
    });

    test('answers in no other name: each route with a name refuses it, and the others answer in that of the key', async () => {
      const service = await shareService(store);
      const { key: first } = await newTenant(service, { max_api_keys: 20 });
      const key = await keyWith(service, first, { responder: 'dana' });
      const asking = async () => {
        const { id } = await createPacket(service, { hitl: question }, first);
        await service.call('PATCH', `/packets/${id}`, { key: first, body: { status: 'awaiting_human' } });
        return id as string;
      };
      const id = await asking();
      const channel = { kind: 'slack', target: 'https://hooks.slack.com/services/x' };
      const made = await service.call('POST', '/channels', { key, body: channel });
      assert.equal(made.body.responder, 'dana', made.text);
      for (const [name, { path, body }] of Object.entries(asPerson)) {
        const route = all.find((one) => one.id === name)!;
        const address = path === 'channel' ? `/channels/${made.body.id}` : addressOf(route, id);
        refused(await service.call(route.method, address, { key, body }), /answers? as dana/, name);
      }
      // Null would let the person enter any name.
      refused(await service.call('PATCH', `/channels/${made.body.id}`, { key, body: { responder: null } }), /only answer as dana/, 'null');
      assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');

      const by: Record<string, (id: string) => Promise<unknown>> = {
        link: async (packet) => {
          const { body: link } = await service.call('POST', `/packets/${packet}/answer-links`, { key });
          const { digest } = (await service.call('GET', `/packets/${packet}`, { key })).body.hitl;
          const raw = new URLSearchParams({ name: 'mia', responded_by: 'mia', response: 'Yes', digest }).toString();
          const headers = { 'content-type': 'application/x-www-form-urlencoded' };
          return service.call('POST', `/${new URL(link.url).pathname}`, { key: null, raw, headers });
        },
        'A2A over JSON-RPC': (packet) => a2a(service, 'SendMessage', messageOf('Yes', { taskId: packet }), { key }),
        'A2A over HTTP+JSON': (packet) =>
          service.call('POST', '//a2a/message:send', {
            ...{ key, headers: { 'a2a-version': '1.0' }, body: messageOf('Yes', { taskId: packet, metadata: { responded_by: 'mia' } }) },
          }),
      };
      for (const [way, answer] of Object.entries(by)) {
        const packet = await asking();
        await answer(packet);
        const { hitl } = (await service.call('GET', `/packets/${packet}`, { key })).body;
        assert.deepEqual([hitl.response, hitl.responded_by], ['Yes', 'dana'], way);
      }
    });
  });
}

/** The rights that the provider's groups give, each by a group of its name. */
const rightsOfGroups = { read: ['read'], work: ['work'], respond: ['respond'], manage: ['manage'], erase: ['erase'], admin: ['admin'] };
const groupRights = Object.fromEntries(Object.entries(rightsOfGroups).map(([group, rights]) => [`idp:${group}`, rights]));

/** What no token does, whatever its scopes: it makes nothing that acts once it has expired. By the routes, with their bodies. */
const notByToken: Readonly<Record<string, object>> = {
  createAnswerLink: {},
  createKey: { name: 'k', scopes: ['read'], agents: [unknownId] },
  rotateKey: {},
  putSchedule: { cron: '@daily', timezone: 'UTC', packet: source(unknownId) },
};

for (const store of stores)
  describe(`A session and a token, on ${store.name}`, () => {
    test('without the right are refused by every route with its name, and admitted with that right alone [H566]', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const settings = {
        ...signInSettings(issuer),
        SERVICE_OIDC_RIGHTS: JSON.stringify(groupRights),
        SERVICE_RATE_LIMIT_PER_MINUTE: '100000',
      };
      const service = await startService(t, { store, clock, settings });
      const scopes = ['read', 'work', 'respond', 'manage', 'erase'];
      const sessions = new Map<string, ReturnType<typeof bySession>>();
      const session = async (groups: readonly string[]) => {
        const id = groups.join(' ');
        if (!sessions.has(id))
          sessions.set(id, bySession(service, cookiesOf(await signIn(service, issuer, { ...dana, groups: [...groups] }))));
        return sessions.get(id)!;
      };
      const tokenOf = (groups: readonly string[], held: readonly string[], audience = publicUrl) => {
        const person = { email: dana.email, email_verified: true, sub: dana.sub };
        const scope = held.map((right) => `baton:${right}`).join(' ');
        return issuer.token(audience, { claims: { ...person, groups: [...groups], scope, client_id: unknownId } });
      };
      const bearer = (token: string, more: Record<string, string> = {}) => ({
        key: null,
        headers: { authorization: `Bearer ${token}`, ...more },
      });
      const others = (right: string) => scopes.filter((scope) => !right.split('|').includes(scope));
      /** The tokens by what they lack and have. */
      const made = new Map<string, Promise<string>>();
      const token = (groups: readonly string[], held: readonly string[]) => {
        const id = `${groups.join(' ')} ${held.join(' ')}`;
        if (!made.has(id)) made.set(id, tokenOf(groups, held));
        return made.get(id)!;
      };

      for (const route of all) {
        const right = rightOfRoute[route.id]!;
        const sufficient = right.split('|');
        if (![...scopes, 'admin'].includes(sufficient[0]!)) continue;
        const about = `${route.method} ${route.path}`;
        const origin = { origin: publicUrl };
        const lesser = await (await session(others(right)))(route.method, addressOf(route), { headers: origin });
        assert.deepEqual([lesser.status, lesser.body.code], [403, 'FORBIDDEN'], `${about} with a session: ${lesser.text}`);
        assert.match(lesser.body.detail, new RegExp(`needs the right ${sufficient.join(' or ')}\\b`), about);
        // Everybody's groups give every right, and the token holds every scope but the one in question.
        const lacking = await service.call(route.method, addressOf(route), bearer(await token([...scopes, 'admin'], others(right))));
        assert.deepEqual([lacking.status, lacking.body.code], [403, 'FORBIDDEN'], `${about} with a token: ${lacking.text}`);
        assert.match(
          lacking.body.detail,
          right === 'admin' ? /needs an admin key/ : new RegExp(`needs a token with the scope ${sufficient.join(' or ')};`),
          about,
        );
        // A token's scopes give nothing that its groups do not.
        const cut = await service.call(route.method, addressOf(route), bearer(await token(others(right), scopes)));
        assert.equal(cut.status, 403, `${about} with a token whose groups lack it: ${cut.text}`);
        // An admitted request for events does not end.
        if (route.id === 'events') continue;
        for (const scope of sufficient) {
          const admitted = await (await session([scope]))(route.method, addressOf(route), { headers: origin });
          assert.doesNotMatch(admitted.text, /needs the right/, `${about} with a session with ${scope}`);
          const held = await service.call(route.method, addressOf(route), bearer(await token([scope, 'admin'], [scope])));
          const isNever = ['erase', 'admin'].includes(scope);
          assert.equal(
            /needs an? (admin key|token with the scope)/.test(held.text),
            isNever,
            `${about} with a token with ${scope}: ${held.text}`,
          );
        }
      }

      const { id } = await createPacket(service, { hitl: question });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'k', scopes: ['read'], agents: [unknownId] } });
      for (const [name, body] of Object.entries(notByToken)) {
        const route = all.find((one) => one.id === name)!;
        const address = addressOf(route, name === 'rotateKey' ? key.id : id);
        const answer = await service.call(route.method, address, { ...bearer(await token(scopes, scopes)), body });
        refused(answer, /once it has expired|after a token has expired/, name);
      }
    });

    test('without the right are refused by every tool of MCP and every method of A2A, where a session counts for nothing', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const settings = {
        ...signInSettings(issuer),
        SERVICE_OIDC_RIGHTS: JSON.stringify(groupRights),
        SERVICE_RATE_LIMIT_PER_MINUTE: '100000',
      };
      const service = await startService(t, { store, clock, settings });
      const { id } = await createPacket(service, { hitl: question });
      const before = (await service.call('GET', `/packets/${id}`)).body;
      const rights = ['read', 'work', 'respond', 'manage'];
      const cookie = cookiesOf(await signIn(service, issuer, { ...dana, groups: [...rights, 'admin'] }));
      const asSession = { key: null, headers: { cookie, origin: publicUrl, 'x-requested-with': 'baton' } };
      const bearer = async (audience: string, right: string, cut: 'scope' | 'groups') => {
        const lesser = rights.filter((one) => !right.split('|').includes(one));
        const [groups, held] = cut === 'scope' ? [rights, lesser] : [lesser, rights];
        const claims = { groups: [...groups], scope: held.map((one) => `baton:${one}`).join(' ') };
        const token = await issuer.token(audience, { claims });
        return { key: null, headers: { authorization: `Bearer ${token}` } };
      };
      for (const [name, right] of Object.entries(rightOfTool)) {
        const call = argumentsOf(name, id, { lease_token: 't' });
        assert.equal((await mcp(service, 'tools/call', call, { ...asSession, agent: null })).status, 401, name);
        for (const cut of ['scope', 'groups'] as const) {
          const answer = await mcp(service, 'tools/call', call, { ...(await bearer(`${publicUrl}/mcp`, right, cut)), agent: null });
          refused(answer, /scope|is no tool|not found/i, `${name} without the ${cut}`);
        }
      }
      for (const [method, right] of Object.entries(rightOfMethod)) {
        assert.equal((await a2a(service, method, paramsOf(method, id), asSession)).status, 401, method);
        for (const cut of ['scope', 'groups'] as const)
          refused(
            await a2a(service, method, paramsOf(method, id), await bearer(publicUrl, right, cut)),
            new RegExp(`scope ${right}`),
            method,
          );
      }
      for (const { method, route } of a2aRestRoutes) {
        const right = rightOfMethod[method]!;
        for (const cut of ['scope', 'groups'] as const) {
          const { headers } = await bearer(publicUrl, right, cut);
          const request = { key: null, headers: { ...headers, 'a2a-version': '1.0' }, ...bodyOf(route, method) };
          refused(
            await service.call(route.method, addressOf(route, id), request),
            new RegExp(`scope ${right}`),
            `${route.method} ${route.path}`,
          );
        }
      }
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body, before);
      assert.equal((await service.call('GET', '/packets')).body.total, 1);
    });
  });

/** What ends or answers a question, by each way; each returns the service's answer. */
const endings: Readonly<Record<string, (on: { service: TestService; key: string; id: string; taskId: string }) => Promise<TestAnswer>>> = {
  REST: ({ service, key, id }) => service.call('POST', `/packets/${id}/respond`, { key, body: { response: 'Yes', responded_by: 'dana' } }),
  'the console': ({ service, key, id }) =>
    service.call('POST', `//console/api/v1/packets/${id}/respond`, { key, body: { response: 'Yes', responded_by: 'dana' } }),
  'an answer link': ({ service, key, id }) => service.call('POST', `/packets/${id}/answer-links`, { key, body: {} }),
  'A2A over JSON-RPC': ({ service, key, id }) => a2a(service, 'SendMessage', messageOf('Yes', { taskId: id }), { key }),
  'A2A over HTTP+JSON': ({ service, key, id }) =>
    service.call('POST', '//a2a/message:send', { key, headers: { 'a2a-version': '1.0' }, body: messageOf('Yes', { taskId: id }) }),
  'a withdrawal': ({ service, key, id }) => service.call('DELETE', `/packets/${id}/question`, { key }),
  'another question': ({ service, key, id }) => service.call('PATCH', `/packets/${id}`, { key, body: { hitl: { question: 'Nothing?' } } }),
  'a question over MCP': ({ service, key, id }) =>
    mcp(service, 'tools/call', argumentsOf('ask_human', id, { agent_id: 'resolver' }), { key, tasks: true }),
  'the end of its task over MCP': ({ service, key, taskId }) => mcp(service, 'tasks/cancel', { taskId }, { key, tasks: true }),
};

for (const store of stores)
  test(`A question that excludes its source is answered and ended by no key of its family, on any way, on ${store.name}`, async () => {
    const service = await shareService(store);
    const { key: parent } = await newTenant(service, { max_api_keys: 20 });
    const asker = await keyWith(service, parent, {});
    const family = { parent, asker, sibling: await keyWith(service, parent, {}), child: await keyWith(service, asker, {}) };
    const { id } = await createPacket(service, { hitl: { ...question, exclude_source: true } }, asker);
    const claim = await service.call('POST', `/packets/${id}/claim`, { key: asker, body: { agent_id: 'resolver' } });
    assert.equal(claim.status, 200, claim.text);
    const asked = await mcp(service, 'tools/call', argumentsOf('ask_human', id), { key: asker, tasks: true });
    const { taskId } = asked.body.result;
    const before = (await service.call('GET', `/packets/${id}`, { key: parent })).body;
    assert.deepEqual([before.status, before.hitl.exclude_source], ['awaiting_human', true]);
    for (const [who, key] of Object.entries(family))
      for (const [way, end] of Object.entries(endings))
        refused(await end({ service, key, id, taskId }), /with another key|excludes|QUESTION_OPEN/, `${who}, by ${way}`);
    assert.deepEqual((await service.call('GET', `/packets/${id}`, { key: parent })).body, before);
  });

function source(id: string) {
  const metadata = { source_agent: { id, name: id, framework: 'x' }, target_agent: { id: 'b', name: 'b' } };
  return packetRequest({ metadata });
}
/** Bodies that name an agent, by the routes that take one. */
const asAgent = {
  createPacket: () => source('other'),
  chainPacket: () => source('other'),
  batchCreate: () => ({ packets: [source('other')] }),
  putSchedule: () => ({ cron: '@daily', timezone: 'UTC', packet: source('other') }),
  claimPacket: () => ({ agent_id: 'other' }),
  claimNext: () => ({ agent_id: 'other' }),
  batchClaim: (id: string) => ({ agent_id: 'other', packet_ids: [id] }),
  batchComplete: (id: string) => ({ agent_id: 'other', packet_ids: [id] }),
};
/** Bodies that name who answers, by the routes that take one. */
const asPerson: Record<string, { path?: 'channel'; body: object }> = {
  respondPacket: { body: { response: 'Yes', responded_by: 'mia' } },
  respondInConsole: { body: { response: 'Yes', responded_by: 'mia' } },
  createAnswerLink: { body: { responder: 'mia' } },
  createChannel: { body: { kind: 'slack', target: 'https://hooks.slack.com/services/x', responder: 'mia' } },
  patchChannel: { path: 'channel', body: { responder: 'mia' } },
  createKey: { body: { name: 'k', responder: 'mia' } },
};

test('every body that names an agent or a person who answers is in the tables of this file', () => {
  const naming = (...fields: string[]) =>
    all.filter(({ body, describedBody }) => {
      const { properties = {} } = (describedBody ?? body ?? {}) as { properties?: object };
      return fields.some((field) => JSON.stringify(properties).includes(`"${field}":`));
    });
  // The source of a packet can't be changed.
  const agents = naming('agent_id', 'source_agent').filter(({ id }) => id !== 'patchPacket');
  assert.deepEqual(sorted(agents.map(({ id }) => id)), sorted(Object.keys(asAgent)));
  // The responder of a question says who is asked, and is no right.
  const people = naming('responder', 'responded_by').filter(
    ({ id }) => !['createPacket', 'chainPacket', 'batchCreate', 'patchPacket', 'askQuestion', 'askApproval', 'putSchedule'].includes(id),
  );
  assert.deepEqual(sorted(people.map(({ id }) => id)), sorted(Object.keys(asPerson)));
});

test('service-cli says which scope a key needs for each of its commands, and acts in no other name', async (t) => {
  const service = await startService(t);
  const address = await service.handoff.start();
  const { key } = await newTenant(service, { max_api_keys: 20 });
  /** Runs a command with a key, and returns its exit code and what it writes to standard error. */
  async function run(args: string, apiKey: string) {
    let text = '';
    const to = (write: (part: string) => void) => new Writer({ write } as never, {});
    const err = to((part) => {
      text += part;
    });
    const streams = { stdin: () => process.stdin, out: to(() => undefined), err, isInteractive: false };
    const environment = { SERVICE_URL: `${address}/api/v1`, SERVICE_API_KEY: apiKey, HOME: '/nowhere' };
    return { code: await runCli({ ...streams, args: args.split(' '), environment }), text };
  }
  const without = new Map<string, string>();
  for (const { name, operands } of commands) {
    const right = rightOfCommand[name]!;
    if (right === 'none') continue;
    if (!without.has(right)) without.set(right, await keyWithout(service, key, right));
    const args = [
      name,
      ...operands.map((operand) => (operand.name === 'file' ? contractFile : unknownId)),
      ...(optionsOf[name]?.split(' ') ?? []),
    ].join(' ');
    const { code, text } = await run(args, without.get(right)!);
    assert.equal(code, 1, `${args}: ${text}`);
    assert.match(text, right === 'admin' ? /admin key/ : new RegExp(`scope ${right.replace('|', ' or ')}`), args);
  }
  const { id } = await createPacket(service, { hitl: question }, key);
  await service.call('PATCH', `/packets/${id}`, { key, body: { status: 'awaiting_human' } });
  const dana = await keyWith(service, key, { responder: 'dana', agents: ['helper'] });
  for (const [args, sentence] of [
    [`packets claim ${id} --agent other`, /may not act as other/],
    ['packets next --agent other', /may not act as other/],
    [`packets release ${id} --agent other`, /may not act as other/],
    ['packets create --source-id other --target-id b --summary s', /may not act as other/],
    [`respond ${id} --response Yes --by mia`, /only answer as dana/],
    [`packets answer-link ${id} --responder mia`, /only answer as dana/],
    ['channels create --kind slack --target https://hooks.slack.com/services/x --responder mia', /only answer as dana/],
    ['keys create --name k --agent helper --responder mia', /answers as dana/],
  ] as const) {
    const { code, text } = await run(args, dana);
    assert.equal(code, 1, `${args}: ${text}`);
    assert.match(text, sentence, args);
  }
  assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');
});
