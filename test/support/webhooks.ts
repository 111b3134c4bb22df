import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { defaultTenantId } from '../../src/handoff/service/keys.ts';
import { adminKey, type ServiceOptions, startService, type TestService } from './service.ts';
import { type SharedService, shareService } from './shared.ts';
import type { TestStore } from './store.ts';

/** The secret of every test webhook. */
export const secret = 'a-secret-for-tests-0123456789';

/** Starts a service whose webhooks may reach this machine. */
export function startHooked(t: Pick<TestContext, 'after'>, { settings = {}, ...options }: ServiceOptions = {}): Promise<TestService> {
  return startService(t, { ...options, settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', ...settings } });
}

/**
 * Shares a service whose webhooks may reach this machine, as `shareService` does. After the test its tenants are deleted and
 * their deliveries cancelled, so that the deliverer sends nothing of one test in another.
 */
export async function shareHooked(
  t: Pick<TestContext, 'after'>,
  store: TestStore,
  settings: Record<string, string> = {},
): Promise<SharedService> {
  const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', ...settings });
  t.after(async () => {
    const { body: tenants } = await service.call('GET', '/tenants', { key: adminKey });
    for (const { id } of tenants) {
      if (id !== defaultTenantId) assert.equal((await service.call('DELETE', `/tenants/${id}`, { key: adminKey })).status, 204);
    }
    await service.handoff.runOnce.deliver();
  });
  return service;
}

/** Registers a webhook and returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into webhooks of every shape.
export async function register(service: TestService, url: string, more: Record<string, unknown> = {}, key?: string): Promise<any> {
  const answer = await service.call('POST', '/hooks', { body: { url, secret, ...more }, ...(key === undefined ? {} : { key }) });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** A webhook's deliveries, newest first. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into deliveries of every shape.
export async function deliveriesOf(service: TestService, id: string, query = '', key?: string): Promise<any[]> {
  const answer = await service.call('GET', `/hooks/${id}/deliveries${query}`, key === undefined ? {} : { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}
