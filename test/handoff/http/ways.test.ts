import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { tools } from '../../../src/handoff/mcp/tools.ts';
import { a2aRestRoutes } from '../../../src/handoff/model/a2a.ts';
import { answerPageRoutes } from '../../../src/handoff/model/answer-link.ts';
import { routes } from '../../../src/handoff/model/api.ts';
import { respondInConsole } from '../../../src/handoff/model/packet-routes.ts';
import { streamRoutes } from '../../../src/handoff/model/stream.ts';
import { acts } from '../../../src/handoff/rules/rights.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { question } from '../../support/life.ts';
import { mcp } from '../../support/mcp.ts';
import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** The scopes that suffice for each act, written by hand. A new route, tool or method has to be added here. */
const rightOfRoute: Readonly<Record<string, string>> = {
  ...named(
    'read',
    'listPackets listAwaiting searchPackets getPacket packetHistory packetBrief listAgents getStats listAudit events socket',
  ),
  ...named('work', 'createPacket patchPacket deletePacket claimPacket chainPacket batchCreate batchClaim batchComplete claimNext'),
  ...named('work', 'withdrawQuestion releasePacket renewLease endLease'),
  ...named('respond', 'respondPacket respondInConsole createAnswerLink deleteAnswerLink'),
  ...named('read|respond', 'listAnswerLinks'),
  ...named('manage', 'createWebhook patchWebhook deleteWebhook pingWebhook replayDeadLetter retryAll'),
  ...named('manage', 'createChannel patchChannel deleteChannel testChannel replayChannelDelivery createKey rotateKey deleteKey'),
  ...named('read|manage', 'listWebhooks listDeliveries getDelivery listDeadLetters listChannels getChannel listChannelDeliveries listKeys'),
  ...named('admin', 'listTenantKeys createTenant listTenants getTenant patchTenant deleteTenant'),
  ...named('any', 'getOwnKey'),
  ...named('public', 'health ready metrics'),
  ...named('link', 'showAnswerPage sendAnswer'),
};

const rightOfTool: Readonly<Record<string, string>> = {
  ...named('work', 'hand_over claim_next claim renew_lease release update ask_human complete fail'),
  ...named('read', 'get_answer wait_for_packet find_packets get_packet get_brief get_history'),
};

const rightOfMethod: Readonly<Record<string, string>> = {
  ...named('work', 'SendMessage SendStreamingMessage CancelTask CreateTaskPushNotificationConfig DeleteTaskPushNotificationConfig'),
  ...named('read', 'GetTask ListTasks SubscribeToTask ListTaskPushNotificationConfigs GetTaskPushNotificationConfig GetExtendedAgentCard'),
};

const rightOfAct: Readonly<Record<keyof typeof acts, string>> = {
  ...{ listen: 'read', listPushes: 'read', sendPush: 'read', setPush: 'work', removePush: 'work', answerByLink: 'respond' },
};

function named(right: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, right]));
}

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

test('every route, tool, method and act is in the tables of this file, with the right that it declares', () => {
  const declared = Object.values({ ...routes, ...streamRoutes, ...answerPageRoutes, respondInConsole }).map((route) => {
    const { id, access, alternative } = route as { id: string; access: string; alternative?: string };
    return [id, alternative === undefined ? access : `${access}|${alternative}`] as const;
  });
  assert.deepEqual(Object.fromEntries(declared), rightOfRoute);
  assert.deepEqual(sorted(Object.keys(tools)), sorted(Object.keys(rightOfTool)));
  assert.deepEqual(sorted(a2aRestRoutes.map(({ method }) => method)), sorted(Object.keys(rightOfMethod)));
  assert.deepEqual(Object.fromEntries(Object.entries(acts).map(([name, { access }]) => [name, access])), rightOfAct);
});

/** A key of the tenant with all scopes but these. */
async function keyWithout(service: TestService, key: string, right: string): Promise<string> {
  const scopes = ['read', 'work', 'respond', 'manage'].filter((scope) => !right.split('|').includes(scope));
  const { body, text } = await service.call('POST', '/keys', { key, body: { name: `without ${right}`, scopes } });
  assert.ok(body.key, text);
  return body.key;
}

for (const store of stores) {
  describe(`A key without the right, on ${store.name}`, () => {
    test('is refused by every tool of MCP and every method of A2A, and changes nothing', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { max_api_keys: 10 });
      const { id } = await createPacket(service, { hitl: question }, key);
      const before = (await service.call('GET', `/packets/${id}`, { key })).body;
      const without = { read: await keyWithout(service, key, 'read'), work: await keyWithout(service, key, 'work') };
      const given = { packet_id: id, summary: 'x', target_agent: 'b', question: 'q?', reason: 'r', statuses: ['completed'] };
      for (const [name, right] of Object.entries(rightOfTool)) {
        const fields = Object.entries({ ...given, lease_token: 't' }).filter(
          ([field]) => field in tools[name as keyof typeof tools].input.properties,
        );
        const call = { name, arguments: Object.fromEntries(fields) };
        const { status, body } = await mcp(service, 'tools/call', call, { key: without[right as 'read'] });
        assert.ok(status < 500, name);
        // A tool that needs another right is either not listed or refused.
        assert.ok(body.error !== undefined || body.result?.isError === true, `${name}: ${JSON.stringify(body)}`);
      }
      const config = { taskId: id, id: 'mine', url: 'https://example.com/', token: 'a-token-for-tests-0123456789' };
      for (const [method, right] of Object.entries(rightOfMethod)) {
        const params = /^Send/.test(method) ? messageOf('x', {}) : /Create/.test(method) ? config : { id, taskId: id };
        const answer = await a2a(service, method, params, { key: without[right as 'read'] });
        assert.ok(answer.body.error !== undefined || answer.text.includes('"error"'), `${method}: ${answer.text}`);
      }
      const listening = { notifications: { resourceSubscriptions: [`packet://${id}`] } };
      const listened = await mcp(service, 'subscriptions/listen', listening, { key: without.read });
      assert.ok(listened.status === 403 || listened.body.error !== undefined, listened.text);
      assert.deepEqual((await service.call('GET', `/packets/${id}`, { key })).body, before);
      assert.equal((await service.call('GET', '/packets', { key })).body.total, 1);
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
      const message = await a2a(service, 'SendMessage', messageOf('Yes', { taskId: id }), { key: other });
      assert.notEqual(message.body.error, undefined, message.text);
      assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');
    });
  });
}
