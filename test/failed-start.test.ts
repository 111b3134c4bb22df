import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';

import { createFallback } from '../src/fallback/main.ts';
import { readFallbackSettings } from '../src/fallback/settings.ts';
import { createHandoff } from '../src/handoff/main.ts';
import { readHandoffSettings } from '../src/handoff/settings.ts';
import { systemClock } from '../src/kit/clock.ts';
import { systemRandom } from '../src/kit/id.ts';
import { looking } from './support/consistency.ts';
import { storesOfSeveral } from './support/stores.ts';
import { until } from './support/until.ts';

const common = { SERVICE_HOST: '127.0.0.1', SERVICE_LOG_LEVEL: 'silent' };
const logs = { write: () => undefined };

/** A service as the test starts it: `steps` is called whenever the start reads a setting, the clock or randomness. */
type Start = (url: string, step: () => void) => Promise<{ stop(): Promise<void> }>;

function watched<Settings extends object>(settings: Settings, step: () => void): Settings {
  return new Proxy(settings, {
    get(target, name) {
      step();
      return Reflect.get(target, name);
    },
  });
}

const watching = (step: () => void) => ({
  logs,
  clock: () => {
    step();
    return systemClock();
  },
  random: (bytes: Buffer) => {
    step();
    systemRandom(bytes);
  },
});

const services: Record<string, Start> = {
  handoff: (url, step) => {
    const environment = { ...common, SERVICE_DATABASE_URL: url, SERVICE_REDIS_URL: 'redis://127.0.0.1:1', SERVICE_PORT: '0' };
    return createHandoff(watched(readHandoffSettings({ environment }), step), watching(step));
  },
  fallback: (url, step) => {
    const settings = readFallbackSettings({ flags: { storage: url, port: '0' }, environment: common });
    return createFallback(watched(settings, step), watching(step));
  },
};

/** Whether nothing has the database open: SQLite then removes its log, and PostgreSQL has no other session. */
async function isClosed(url: string): Promise<boolean> {
  if (url.startsWith('sqlite:')) return !existsSync(`${url.slice('sqlite://'.length)}-wal`);
  const others = 'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
  return looking(url, async ({ query }) => (await query(others)).length === 0);
}

/** Asserts that a service has closed the database; sessions of PostgreSQL end a moment after their connections. */
async function assertClosed(url: string, step: string): Promise<void> {
  if (url.startsWith('sqlite:')) assert.ok(await isClosed(url), step);
  else
    await until(
      () => isClosed(url),
      () => `${step}: the database is still open`,
    );
}

for (const store of storesOfSeveral) {
  describe(`A start that fails, on ${store.name}`, () => {
    for (const [name, start] of Object.entries(services))
      test(`closes what the ${name} service has opened, at each step`, async (t) => {
        const { url, drop } = await store.open(name === 'handoff' ? 'handoff' : undefined);
        t.after(drop);
        // The first start makes the schema and a key.
        await (await start(url, () => undefined)).stop();
        let steps = 0;
        const whole = await start(url, () => {
          steps += 1;
        });
        // Steps that only read settings are alike; each part of the start has many.
        const failing = Array.from({ length: 8 }, (_, index) => Math.ceil((steps * (index + 1)) / 8));
        assert.equal(await isClosed(url), false, 'the check sees an open database');
        await whole.stop();
        await assertClosed(url, 'after the stop');
        for (const fails of failing) {
          let step = 0;
          const started = start(url, () => {
            step += 1;
            if (step === fails) throw new Error(`step ${fails}`);
          });
          await assert.rejects(started, { message: `step ${fails}` }, `step ${fails} of ${failing.at(-1)}`);
          await assertClosed(url, `step ${fails} of ${failing.at(-1)}`);
        }
      });
  });
}
