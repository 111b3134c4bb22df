import type { TestContext } from 'node:test';

import { createHandoff, type Dependencies, type Handoff } from '../../src/handoff/main.ts';
import { createExample } from '../../src/handoff/model/examples.ts';
import { readHandoffSettings } from '../../src/handoff/settings.ts';
import { inMemory, type TestStore } from './store.ts';

/** When the clocks of tests start. */
export const startOfTests = '2026-03-01T09:30:00.000Z';

/** A clock that only moves when a test turns it. */
export class TestClock {
  #now: number;

  constructor(start = startOfTests) {
    this.#now = Date.parse(start);
  }

  readonly read = (): Date => new Date(this.#now);

  /** Advances the clock by seconds, which may be fractional. */
  turn(seconds: number): void {
    this.#now += Math.round(seconds * 1000);
  }

  set(moment: string): void {
    this.#now = Date.parse(moment);
  }
}

/** An answer of the service. */
export interface TestAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape.
  readonly body: any;
  readonly text: string;
  readonly headers: Record<string, string | string[] | number | undefined>;
}

export interface CallOptions {
  body?: unknown;
  /** The raw body, instead of `body`. */
  raw?: string | Buffer;
  /** The API key; by default the admin key of the tenant `default`, none if null. */
  key?: string | null;
  headers?: Record<string, string>;
}

/** A running service without a socket, its clock, and a way to call it. */
export interface TestService {
  readonly handoff: Handoff;
  readonly clock: TestClock;
  readonly databaseUrl: string;
  /** Calls a path below `/api/v1`, or from the root if it begins with `//`. */
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<TestAnswer>;
  /** All log lines of the service. */
  readonly logs: string[];
  /** Resolves once a line that contains the text is logged after this call. */
  logged(text: string): Promise<void>;
}

/** The admin key of every test service. */
export const adminKey = 'test-admin-key-0123456789';

export interface ServiceOptions {
  store?: TestStore;
  /** An existing database, for a second instance. */
  databaseUrl?: string;
  clock?: TestClock;
  /** Settings by the names of their variables. Request limits are off unless set here. */
  settings?: Record<string, string>;
  /** Other replacements of the outside world. */
  dependencies?: Pick<Dependencies, 'charactersPerTurn' | 'mcpExtension' | 'outgoing' | 'redisCommandMs'>;
}

/** Starts a service that ends with the test. */
export async function startService(t: Pick<TestContext, 'after'>, options: ServiceOptions = {}): Promise<TestService> {
  const { store = inMemory, clock = new TestClock(), settings = {} } = options;
  const opened =
    options.databaseUrl === undefined ? await store.open('handoff') : { url: options.databaseUrl, drop: async () => undefined };
  const logs: string[] = [];
  const waiting = new Set<(line: string) => void>();
  const environment = {
    SERVICE_DATABASE_URL: opened.url,
    SERVICE_ADMIN_KEY: adminKey,
    SERVICE_HOST: '127.0.0.1',
    SERVICE_PORT: '0',
    SERVICE_RATE_LIMIT_PER_MINUTE: '0',
    SERVICE_HOURLY_QUOTA_FREE: '0',
    SERVICE_HOURLY_QUOTA_PRO: '0',
    SERVICE_HOURLY_QUOTA_BUSINESS: '0',
    ...settings,
  };
  const handoff = await createHandoff(readHandoffSettings({ environment }), {
    clock: clock.read,
    ...options.dependencies,
    logs: {
      write(line) {
        logs.push(line);
        for (const check of waiting) check(line);
      },
    },
  });
  t.after(async () => {
    await handoff.stop();
    await opened.drop();
  });
  const logged = (text: string) =>
    new Promise<void>((resolve) => {
      const check = (line: string) => {
        if (!line.includes(text)) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
    });
  return {
    handoff,
    clock,
    databaseUrl: opened.url,
    logs,
    logged,
    call: (method, path, callOptions) => call(handoff, method, path, callOptions),
  };
}

const call = (handoff: Handoff, method: string, path: string, { key = adminKey, headers, ...options }: CallOptions = {}) =>
  inject(handoff, method, path.startsWith('//') ? path.slice(1) : `/api/v1${path}`, {
    ...options,
    headers: { ...(key === null ? {} : { 'x-api-key': key }), ...headers },
  });

/** Sends a request to a service without a socket; a body is JSON unless its headers say otherwise. */
export async function inject(
  { app }: Pick<Handoff, 'app'>,
  method: string,
  url: string,
  { body, raw, headers = {} }: Omit<CallOptions, 'key'> = {},
): Promise<TestAnswer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  // As over a network, a request arrives in a later turn of the event loop than the previous answer.
  await new Promise(setImmediate);
  const answer = await app.inject({
    method: method as 'GET',
    url,
    headers: { ...(payload === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(payload === undefined ? {} : { payload }),
  });
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(String(answer.headers['content-type'] ?? ''));
  return {
    status: answer.statusCode,
    body: isJson && answer.body !== '' ? answer.json() : undefined,
    text: answer.body,
    headers: answer.headers,
  };
}

/** Creates a tenant with a key. */
export async function newTenant(
  service: TestService,
  {
    tier = 'business',
    ...more
  }: { tier?: string; handoffs_per_day?: number | null; requests_per_hour?: number | null; max_api_keys?: number } = {},
): Promise<{ id: string; key: string; keyId: string }> {
  const tenant = await service.call('POST', '/tenants', { body: { name: 'Acme', tier, ...more } });
  const key = await service.call('POST', '/keys', { body: { name: 'first', tenant_id: tenant.body.id } });
  return { id: tenant.body.id, key: key.body.key, keyId: key.body.id };
}

/** A create request: the documented example without its question, with changes. */
export function packetRequest(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const { hitl: _, ...example } = structuredClone(createExample);
  return { ...example, ...changes };
}

/** Creates a packet and returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into packets of every shape.
export async function createPacket(service: TestService, changes: Record<string, unknown> = {}, key?: string): Promise<any> {
  const answer = await service.call('POST', '/packets', { body: packetRequest(changes), ...(key === undefined ? {} : { key }) });
  if (answer.status !== 201) throw new Error(`The packet was not created: ${answer.status} ${answer.text}`);
  return answer.body;
}
