import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../src/kit/free-port.ts';
import { runCliProgram } from './support/cli-program.ts';
import { openHandoffDatabase } from './support/databases.ts';
import { chainRequest } from './support/fallback.ts';
import { temporaryFolder } from './support/folder.ts';
import { startPostgres } from './support/postgres.ts';
import { startFallbackProcess, startProcess, type TestProcess } from './support/process.ts';
import { startProgram } from './support/program.ts';
import { findProgram } from './support/programs.ts';
import { startReceiver } from './support/receiver.ts';
import { adminKey, packetRequest } from './support/service.ts';
import { listenTo, openSocket } from './support/streams.ts';
import { until } from './support/until.ts';

const deploy = fileURLToPath(new URL('../deploy/', import.meta.url));
const token = 'token-of-the-metrics';
const keyed = { 'x-api-key': adminKey };

/** Two instances of the handoff service on one PostgreSQL. */
async function startInstances(t: TestContext): Promise<TestProcess[]> {
  const { url: databaseUrl, drop } = await openHandoffDatabase();
  const settings = { SERVICE_METRICS_TOKEN: token, SERVICE_TRUSTED_PROXIES: '127.0.0.1' };
  const instances = await Promise.all([1, 2].map(() => startProcess({ databaseUrl, settings })));
  t.after(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
    await drop();
  });
  return instances;
}

const hostOf = (address: string) => new URL(address).host;

/** Runs nginx with a configuration of deploy/nginx, in which the texts are replaced, on a free port. */
async function runNginx(t: TestContext, name: string, replaced: Readonly<Record<string, string>>) {
  const folder = temporaryFolder(t);
  const [port, other] = [await freePort(), await freePort()];
  const file = join(folder, name);
  const original = readFileSync(join(deploy, 'nginx', name), 'utf8')
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace('listen 8000', `listen 127.0.0.1:${other}`)
    .replaceAll('/var/log/nginx', folder);
  const write = (texts: Readonly<Record<string, string>>) =>
    writeFileSync(
      file,
      Object.entries(texts).reduce((text, [from, to]) => {
        assert.ok(text.includes(from), from);
        return text.replace(from, to);
      }, original),
    );
  write(replaced);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr; events {} http { ${temporary.join(' ')} include ${file}; }`,
  );
  const nginx = startProgram(['nginx', '-e', 'stderr', '-c', join(folder, 'nginx.conf')], { t, cwd: folder, endBy: 'SIGTERM' });
  const address = `http://127.0.0.1:${port}`;
  await until(async () => ((await fetch(`${address}/health`)).status === 200 ? true : undefined), nginx.stderr);
  return {
    address,
    /** Takes over other texts, without a pause, as `nginx -s reload` does. */
    reload(texts: Readonly<Record<string, string>>): void {
      write({ ...replaced, ...texts });
      nginx.child.kill('SIGHUP');
    },
  };
}

/** Runs nginx with deploy/nginx/baton.conf in front of the instances; returns its address. */
async function startNginx(t: TestContext, [first, second]: readonly TestProcess[]): Promise<string> {
  const { address } = await runNginx(t, 'baton.conf', {
    'handoff-1:8080': hostOf(first!.address),
    'handoff-2:8080': hostOf(second!.address),
    'server fallback:8000': 'server 127.0.0.1:1',
  });
  return address;
}

/** The number of requests for packets that an instance has answered. */
async function answered(instance: TestProcess): Promise<number> {
  const { text } = await instance.call('GET', '//metrics', { headers: { authorization: `Bearer ${token}` } });
  const counts = text.split('\n').filter((line) => line.startsWith('service_requests_total') && line.includes('/packets'));
  return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('nginx with deploy/nginx/baton.conf', { skip: findProgram('nginx') === undefined }, () => {
  test('shares requests among the instances, lets streams through at once, and leaves out an instance that is gone', async (t) => {
    const instances = await startInstances(t);
    const address = await startNginx(t, instances);

    const events = await listenTo(t, address, '', keyed);
    const socket = await openSocket(address, '', keyed);
    t.after(() => socket.socket.terminate());
    assert.equal((await socket.messages.next()).type, 'connected');

    const ids: string[] = [];
    for (let count = 0; count < 8; count += 1) {
      const answer = await fetch(`${address}/api/v1/packets`, {
        method: 'POST',
        headers: { ...keyed, 'content-type': 'application/json' },
        body: JSON.stringify(packetRequest()),
      });
      assert.equal(answer.status, 201);
      ids.push(((await answer.json()) as { id: string }).id);
    }
    assert.ok(
      (await Promise.all(instances.map(answered))).every((count) => count > 0),
      'both instances answered',
    );
    const heard = await events.events.take(8);
    assert.deepEqual(heard.map(({ data }) => data.packet_id).sort(), [...ids].sort());
    assert.equal((await socket.messages.take(8)).length, 8);

    assert.equal((await fetch(`${address}/metrics`)).status, 404);
    await instances[0]!.kill();
    for (const id of ids) assert.equal((await fetch(`${address}/api/v1/packets/${id}`, { headers: keyed })).status, 200);
  });

  test('closes idle connections before an instance that drains ends them', () => {
    const secondsIn = (file: string, pattern: RegExp) =>
      [...readFileSync(join(deploy, file), 'utf8').matchAll(pattern)].map(([, seconds]) => Number(seconds));
    const drains = ['handoff', 'fallback'].flatMap((name) => secondsIn(`systemd/baton-${name}.service`, /SERVICE_DRAIN_SECONDS=(\d+)/g));
    for (const name of ['baton', 'tenants']) {
      const idle = secondsIn(`nginx/${name}.conf`, /keepalive_timeout (\d+)s;/g);
      assert.deepEqual([idle.length, drains.length], [2, 2]);
      assert.ok(Math.max(...idle) < Math.min(...drains));
    }
  });

  test('gives a 503 of the only instance that runs to its caller, and sends it the next request [H433]', async (t) => {
    let failing = 1;
    const { url } = await startReceiver(t, (response, { path }) => {
      const isFailing = path !== '/health' && failing-- > 0;
      response.writeHead(isFailing ? 503 : 200).end(isFailing ? 'the database is away' : 'here');
    });
    const { address } = await runNginx(t, 'baton.conf', {
      'handoff-1:8080': new URL(url).host,
      'handoff-2:8080': '127.0.0.1:1',
      'server fallback:8000': 'server 127.0.0.1:1',
    });
    // The other instance has been asked, and is left out.
    for (let count = 0; count < 2; count += 1) assert.equal((await fetch(`${address}/health`)).status, 200);
    const answers = [];
    for (let count = 0; count < 6; count += 1) {
      const answer = await fetch(`${address}/api/v1/packets`);
      answers.push([answer.status, await answer.text()]);
    }
    assert.deepEqual(answers, [[503, 'the database is away'], ...Array(5).fill([200, 'here'])]);
  });

  test('names the client, so that wrong keys are counted per client and not per proxy', async (t) => {
    const instances = await startInstances(t);
    const address = await startNginx(t, instances);
    // nginx appends the address of its own client, 127.0.0.1, which is a trusted proxy here: the one before it counts.
    const statusFor = async (client: string) =>
      (await fetch(`${address}/api/v1/packets`, { headers: { 'x-api-key': 'svc_wrong', 'x-forwarded-for': client } })).status;
    const statuses: number[] = [];
    // Each instance counts up to 30 in a minute.
    for (let count = 0; count < 70; count += 1) statuses.push(await statusFor('198.51.100.7'));
    assert.equal(statuses.at(-1), 429, 'one client has sent too many wrong keys');
    assert.equal(await statusFor('198.51.100.8'), 401, 'another has not');
  });
});

describe('nginx with deploy/nginx/tenants.conf', { skip: findProgram('nginx') === undefined }, () => {
  test('sends tenants to their deployments by a header; one of them moves while others work, and nothing that was answered is lost', async (t) => {
    const databases = await Promise.all([openHandoffDatabase(), openHandoffDatabase()]);
    const settings = { SERVICE_TRUSTED_PROXIES: '127.0.0.1' };
    const deployments = await Promise.all(databases.map(({ url }) => startProcess({ databaseUrl: url, settings })));
    t.after(async () => {
      await Promise.all(deployments.map((one) => one.stop()));
      await Promise.all(databases.map(({ drop }) => drop()));
    });
    const [a, b] = deployments as [TestProcess, TestProcess];
    const proxy = await runNginx(t, 'tenants.conf', { 'handoff-a:8080': hostOf(a.address), 'handoff-b:8080': hostOf(b.address) });

    const tenant = async () => {
      const { id } = (await a.call('POST', '/tenants', { body: { name: 'A tenant', tier: 'business' } })).body;
      const { key } = (await a.call('POST', '/keys', { body: { name: 'its key', tenant_id: id } })).body;
      return { id: id as string, key: key as string };
    };
    const [moving, staying] = await Promise.all([tenant(), tenant()]);
    const statuses = { moving: new Set<number>(), staying: new Set<number>() };
    const made: string[] = [];
    let requests = 0;
    const over = new AbortController();
    const send = async ({ id, key }: { id: string; key: string }, name: keyof typeof statuses) => {
      const headers = { 'x-tenant': id, 'x-api-key': key, 'content-type': 'application/json', 'idempotency-key': `${name} ${requests++}` };
      const init = { method: 'POST', headers, body: JSON.stringify(packetRequest()) };
      const attempt = () => fetch(`${proxy.address}/api/v1/packets`, init);
      // nginx closes idle connections when it reads its configuration again; a repeated request makes no second packet.
      const answer = await attempt().catch(attempt);
      statuses[name].add(answer.status);
      const { id: packet } = answer.status === 201 ? ((await answer.json()) as { id: string }) : { id: undefined };
      if (answer.status === 503) assert.equal(answer.headers.get('retry-after'), '30');
      if (packet !== undefined && name === 'moving') made.push(packet);
      return answer.status;
    };
    const working = Promise.all([
      (async () => {
        while (!over.signal.aborted) await send(moving, 'moving');
      })(),
      (async () => {
        while (!over.signal.aborted) await send(staying, 'staying');
      })(),
    ]);
    const rule = `# 0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b`;
    await until(
      async () => (made.length > 5 ? true : undefined),
      () => 'no packets',
    );

    // The steps of docs/large-deployments.md.
    proxy.reload({ [`${rule} 30;`]: `${moving.id} 30;` });
    await until(
      async () => (statuses.moving.has(503) ? true : undefined),
      () => 'no 503',
    );
    const file = join(temporaryFolder(t), 'tenant.jsonl');
    const cli = (args: readonly string[], database: number) =>
      runCliProgram(args, { environment: { SERVICE_DATABASE_URL: databases[database]!.url } });
    const exported = await cli(['export', file, '--tenant', moving.id], 0);
    assert.equal(exported.exitCode, 0, exported.stderr);
    const imported = await cli(['import', file], 1);
    assert.equal(imported.exitCode, 0, imported.stderr);
    assert.equal((await a.call('DELETE', `/tenants/${moving.id}`)).status, 204);
    const before = made.length;
    proxy.reload({ [`${rule} deployment_b;`]: `${moving.id} deployment_b;` });
    await until(
      async () => (made.length > before + 5 ? true : undefined),
      () => 'no packets after the move',
    );
    over.abort();
    await working;

    assert.deepEqual([...statuses.staying], [201]);
    assert.deepEqual([...statuses.moving].sort(), [201, 503]);
    const { body } = await b.call('GET', '/packets?limit=200&order=asc', { key: moving.key });
    assert.deepEqual(
      body.packets.map(({ id }: { id: string }) => id),
      made.slice(0, 200),
    );
    assert.equal(body.total, made.length);
    assert.equal((await a.call('GET', '/packets', { key: moving.key })).status, 401);
    assert.equal((await b.call('GET', '/packets', { key: staying.key })).status, 401);
  });
});

describe('Prometheus with deploy/prometheus', { skip: findProgram('prometheus') === undefined }, () => {
  test('reads both instances, and an alert fires when one is gone', async (t) => {
    const instances = await startInstances(t);
    const folder = temporaryFolder(t);
    cpSync(join(deploy, 'prometheus'), folder, { recursive: true });
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'metrics-token'), token);
    const config = readFileSync(join(folder, 'prometheus.yml'), 'utf8')
      .replace('handoff-1:8080', hostOf(instances[0]!.address))
      .replace('handoff-2:8080', hostOf(instances[1]!.address))
      .replaceAll(/(scrape|evaluation)_interval: 15s/g, '$1_interval: 2s')
      .replace(/ {2}- job_name: fallback[\s\S]*/, '');
    writeFileSync(join(folder, 'prometheus.yml'), config);
    const rules = readFileSync(join(folder, 'alerts.yml'), 'utf8');
    writeFileSync(join(folder, 'alerts.yml'), rules.replaceAll(/for: \d+m/g, 'for: 0s'));
    const port = await freePort();
    const prometheus = startProgram(
      [
        'prometheus',
        `--config.file=${folder}/prometheus.yml`,
        `--storage.tsdb.path=${folder}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { t, cwd: folder, endBy: 'SIGTERM' },
    );
    // biome-ignore lint/suspicious/noExplicitAny: what Prometheus answers.
    const ask = async (path: string): Promise<any> => ((await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()) as any).data;

    const up = await until(async () => {
      const { result } = await ask(`query?query=${encodeURIComponent('up == 1')}`);
      return result.length === 2 ? result : undefined;
    }, prometheus.stderr);
    assert.deepEqual(
      up.map(({ metric }: { metric: { instance: string } }) => metric.instance).sort(),
      instances.map(({ address }) => hostOf(address)).sort(),
    );
    // On a slow machine a scrape may miss its time limit, after which the series is absent until the next one.
    await until(async () => {
      const { result } = await ask(`query?query=${encodeURIComponent('service_packets{status="created"}')}`);
      return result.length === 2 ? result : undefined;
    }, prometheus.stderr);

    const gone = hostOf(instances[1]!.address);
    await instances[1]!.kill();
    const alert = await until(async () => {
      const { alerts } = await ask('alerts');
      return alerts.find(
        ({ labels, state }: { labels: { alertname: string; instance: string }; state: string }) =>
          labels.alertname === 'BatonInstanceDown' && labels.instance === gone && state === 'firing',
      );
    }, prometheus.stderr);
    assert.match(alert.annotations.summary, /does not answer/);
  });
});

/** The system calls in a set of systemd, such as `@system-service`, or the name of one. */
function callsIn(name: string): string[] {
  if (!name.startsWith('@')) return [name];
  const { stdout } = spawnSync('systemd-analyze', ['syscall-filter', name], { encoding: 'utf8' });
  const [, ...lines] = stdout.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#')).flatMap(callsIn);
}

/** The system calls that a unit of systemd allows. */
function allowedBy(unit: string): Set<string> {
  const allowed = new Set<string>();
  for (const [, not, sets = ''] of readFileSync(join(deploy, 'systemd', unit), 'utf8').matchAll(/^SystemCallFilter=(~?)(.*)$/gm))
    for (const call of sets.split(' ').flatMap(callsIn)) allowed[not === '~' ? 'delete' : 'add'](call);
  return allowed;
}

const observer = ['strace', 'systemd-analyze'].every((name) => findProgram(name) !== undefined);

describe('The units of systemd', { skip: !observer }, () => {
  /** A command line that notes the system calls of a program that its unit does not allow, and what it noted. */
  function observing(t: TestContext, unit: string) {
    const file = join(temporaryFolder(t), 'calls');
    const others = [...allowedBy(unit)].map((call) => `?${call}`).join(',');
    return {
      under: ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-e', 'signal=none', '-o', file, '-e', `trace=!${others}`],
      // SQLite sets the owner of its files only when root runs it.
      noted: () =>
        readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '' && !(process.getuid?.() === 0 && line.includes(' fchown('))),
    };
  }

  test('allow every system call of the handoff service, also of its threads', async (t) => {
    const { under, noted } = observing(t, 'baton-handoff.service');
    const program = await startProcess({ databaseUrl: `sqlite://${join(temporaryFolder(t), 'handoff.db')}`, under });
    t.after(() => program.kill());
    assert.equal((await program.call('POST', '/packets', { body: packetRequest() })).status, 201);
    for (const path of ['/packets/search?q=refund', '/packets?offset=1&tags=x', '/audit', '//metrics', '//console'])
      assert.equal((await program.call('GET', path)).status, 200, path);
    assert.equal(await program.stop(), 0);
    assert.deepEqual(noted(), []);
  });

  test('allow every system call of the fallback service', async (t) => {
    const { under, noted } = observing(t, 'baton-fallback.service');
    const program = await startFallbackProcess({ storage: `sqlite://${join(temporaryFolder(t), 'fallback.db')}`, under });
    t.after(() => program.kill());
    const { status, body } = await program.call('POST', '/chains', { body: chainRequest() });
    assert.equal(status, 201);
    assert.equal((await program.call('POST', `/chains/${body.id}/test`, { body: { prompt_count: 2 } })).status, 201);
    const template = { chain_id: body.id, template: '{{ chain.name }}' };
    assert.equal((await program.call('POST', '/export-template', { body: template })).status, 200);
    assert.equal(await program.stop(), 0);
    assert.deepEqual(noted(), []);
  });
});

describe('The units of systemd', () => {
  test('start a service again without a limit, whose database was not there yet', async (t) => {
    for (const service of ['handoff', 'fallback']) {
      const unit = readFileSync(join(deploy, `systemd/baton-${service}.service`), 'utf8');
      const settings = new Map([...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
      assert.equal(settings.get('StartLimitIntervalSec'), '0');
      assert.equal(settings.get('StartLimitBurst'), undefined);
      assert.equal(settings.get('Restart'), 'on-failure');
    }
    const server = await startPostgres();
    t.after(() => server.stop());
    await server.pause();
    const settings = { SERVICE_PORT: '0', SERVICE_ADMIN_KEY: adminKey, SERVICE_DATABASE_URL: `${server.url}/postgres` };
    const start = () => startProgram([process.execPath, 'bin/service-cli.js', 'serve'], { t, env: { ...process.env, ...settings } });
    const early = start();
    assert.equal(await early.ended, 1);
    assert.match(early.stderr(), /^handoff: .*PostgreSQL at \S+ can't be used: .*\n$/);
    await server.resume();
    await start().printed(/listening on/);
  });
});
