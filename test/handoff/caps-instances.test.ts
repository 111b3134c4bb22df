import assert from 'node:assert/strict';
import { test } from 'node:test';

import { a2a } from '../support/a2a.ts';
import { openInstances } from '../support/instances.ts';
import { createPacket } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

for (const store of storesOfSeveral)
  test(`Two instances together keep the caps of webhooks, channels and push configurations, on ${store.name}`, async (t) => {
    const { start } = await openInstances(t, () => store.open('handoff'));
    const settings = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' };
    const services = [await start(settings), await start(settings)] as const;
    const url = 'https://127.0.0.1:9/hook';
    const { id } = await createPacket(services[0]);
    const token = 'a-token-for-tests-0123456789';
    const both = async (
      count: number,
      act: (service: (typeof services)[number], index: number) => Promise<{ status: number; ok: boolean }>,
    ) => {
      const answers = await Promise.all(services.flatMap((service) => range(count).map((index) => act(service, index))));
      return answers.filter(({ ok }) => ok).length;
    };
    const post = async (service: (typeof services)[number], path: string, body: object) => {
      const { status, text } = await service.call('POST', path, { body });
      assert.ok(status === 201 || status === 409, text);
      return { status, ok: status === 201 };
    };
    const hooks = await both(70, (service) => post(service, '/hooks', { url, secret: 'a-secret-for-tests-0123456789' }));
    const channels = await both(20, (service) => post(service, '/channels', { kind: 'slack', target: url }));
    const pushes = await both(10, async (service, index) => {
      const config = { taskId: id, url, token, id: `${services.indexOf(service)}-${index}` };
      const { status, body } = await a2a(service, 'CreateTaskPushNotificationConfig', config);
      return { status, ok: body.error === undefined };
    });
    assert.deepEqual({ hooks, channels, pushes }, { hooks: 100, channels: 20, pushes: 10 });
    const [one] = services;
    assert.equal((await one.call('GET', '/hooks')).body.length, 100);
    assert.equal((await one.call('GET', '/channels')).body.length, 20);
    // The same id from both is one configuration.
    const again = { taskId: id, url, token, id: '0-0' };
    await Promise.all(services.map((service) => a2a(service, 'CreateTaskPushNotificationConfig', again)));
    const { body } = await a2a(one, 'ListTaskPushNotificationConfigs', { taskId: id });
    assert.equal(new Set(body.result.configs.map((config: { id: string }) => config.id)).size, 10);
    assert.equal(body.result.configs.length, 10);
  });
