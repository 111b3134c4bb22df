// Runs schemathesis against each service: it makes requests from the API description, and compares every answer with it.
//   tools/schemathesis/check [handoff|fallback] [ARGUMENT...]
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { createFallback } from '../../src/fallback/main.ts';
import { readFallbackSettings } from '../../src/fallback/settings.ts';
import { createHandoff } from '../../src/handoff/main.ts';
import { readHandoffSettings } from '../../src/handoff/settings.ts';

/** How long a run may take, in seconds: it ends itself, and is ended. */
const wantedSeconds = 90;
const mostSeconds = 180;

const key = 'schemathesis-admin-key-0123456789';
const logs = { write: (line: string) => void (/"level":[56]0/.test(line) && process.stderr.write(line)) };

/** No request of a test leaves the machine. */
const resolve = async () => {
  throw Object.assign(new Error('no name is resolved'), { code: 'ENOTFOUND' });
};

/** Streams that end only when their client goes. */
const endless = ['events', 'socket', 'testEvents', 'a2aSendStreamingMessage', 'a2aSubscribeToTask', 'a2aSubscribeToTaskByGet'];

const services = {
  async handoff() {
    const environment = {
      SERVICE_DATABASE_URL: 'sqlite::memory:',
      SERVICE_ADMIN_KEY: key,
      SERVICE_HOST: '127.0.0.1',
      SERVICE_PORT: '0',
      SERVICE_TRUSTED_PROXIES: '127.0.0.1',
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_HOURLY_QUOTA_FREE: '0',
      SERVICE_HOURLY_QUOTA_PRO: '0',
      SERVICE_HOURLY_QUOTA_BUSINESS: '0',
    };
    return createHandoff(readHandoffSettings({ environment }), { logs, outgoing: { resolve } });
  },
  async fallback() {
    const environment = { SERVICE_API_KEYS: key };
    const flags = { host: '127.0.0.1', port: '0', storage: 'sqlite::memory:' };
    return createFallback(readFallbackSettings({ flags, environment }), { logs, environment, resolve });
  },
};

/** What a service answers to every key. */
const keyOf = { handoff: '/api/v1/keys/self', fallback: '/access' };

async function check(name: keyof typeof services, more: readonly string[]): Promise<boolean> {
  const service = await services[name]();
  const address = await service.start();
  const args = ['--config-file', 'schemathesis.toml', 'run', `${address}/openapi.json`, '--header', `X-API-Key: ${key}`];
  args.push('--max-time', String(wantedSeconds), '--seed', '1', '--exclude-operation-id-regex', `^(${endless.join('|')})$`);
  const child = spawn('.venv/bin/schemathesis', [...args, ...more], {
    cwd: import.meta.dirname,
    env: { ...process.env, SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: import.meta.dirname },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const late = setTimeout(() => child.kill('SIGINT'), mostSeconds * 1000);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(late);
  // Without its key the run would only have compared refusals.
  const { status } = await fetch(`${address}${keyOf[name]}`, { headers: { 'x-api-key': key } });
  if (status !== 200) console.error(`The key of the run was refused at its end: ${status}.`);
  await service.stop();
  return code === 0 && status === 200;
}

const [, , wanted, ...more] = process.argv;
const names = Object.keys(services).filter((name) => wanted === undefined || name === wanted) as (keyof typeof services)[];
let passed = names.length > 0;
for (const name of names) passed = (await check(name, more)) && passed;
process.exitCode = passed ? 0 : 1;
