import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import packageJson from '../package.json' with { type: 'json' };
import packageLock from '../package-lock.json' with { type: 'json' };
import { startFallback } from './support/fallback.ts';
import { adminKey, startService } from './support/service.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'baton-package-'));

/** The environment of a user who has installed the package and has no checkout. */
const env = {
  ...process.env,
  PATH: (process.env.PATH ?? '')
    .split(delimiter)
    .filter((place) => !place.startsWith(root))
    .join(delimiter),
};

/** Copies a folder of the checkout to the same place below the other folder: by hard links, where one file system has both. */
function copy(place: string): void {
  mkdirSync(join(folder, place), { recursive: true });
  for (const entry of readdirSync(join(root, place), { withFileTypes: true })) {
    const inside = join(place, entry.name);
    const [from, to] = [join(root, inside), join(folder, inside)];
    if (entry.isDirectory()) copy(inside);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
    else
      try {
        linkSync(from, to);
      } catch {
        copyFileSync(from, to);
      }
  }
}

/** The folders of the locked packages that the package needs at run time, with those inside them. */
const needed = Object.entries(packageLock.packages as Record<string, { dev?: boolean }>)
  .filter(([place, { dev }]) => place !== '' && dev !== true && !place.includes('/node_modules/'))
  .map(([place]) => place);

/**
 * Packs the package as `npm publish` would, and installs it as its users do. The packages that it needs are there
 * already, since to unpack 200 of them takes longer than all tests: npm keeps them because they satisfy it.
 */
before(() => {
  const packed = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', folder], { cwd: root, encoding: 'utf8' }),
  ) as [{ filename: string }];
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  // A package for another platform is locked, but not there.
  for (const place of needed) if (existsSync(join(root, place))) copy(place);
  // npm would install a package again whose programs are not linked.
  copy('node_modules/.bin');
  const install = ['install', '--json', '--prefix', folder, ...quietly, `./${packed[0].filename}`];
  const installed = JSON.parse(execFileSync('npm', install, { cwd: folder, env, encoding: 'utf8' })) as { added: number };
  assert.equal(installed.added, 1, 'it needs only the locked packages');
  // The other packages that a TypeScript program needs, linked from the checkout.
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
  symlinkSync(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

const suite = `
import { createHandoffClient } from 'baton';
import { createFallback, createHandoff, type EmbeddedHandoff } from 'baton/server';

await using handoff: EmbeddedHandoff = await createHandoff();
const answer = await fetch(\`\${handoff.url}/api/v1/tenants\`, { headers: { 'x-api-key': handoff.adminKey ?? '' } });
const [{ name }] = (await answer.json()) as [{ name: string }];
console.log(answer.status, name);

const client = createHandoffClient({ baseUrl: handoff.url, apiKey: handoff.adminKey });
console.log((await client.listPackets()).total);

await using fallback = await createFallback();
console.log((await fetch(\`\${fallback.url}/health\`)).status);

// A second service in the same process has its own data, key and clock.
let now = new Date('2030-01-01T00:00:00Z');
const other = await createHandoff({ adminKey: 'an-admin-key-of-our-own', unclaimedTtlSeconds: 60 }, { clock: () => now });
const headers = { 'x-api-key': 'an-admin-key-of-our-own', 'content-type': 'application/json' };
const agent = { id: 'a', name: 'A', framework: 'x' };
const body = JSON.stringify({ metadata: { source_agent: agent, target_agent: agent }, context: { summary: 's' } });
const packet = await fetch(\`\${other.url}/api/v1/packets\`, { method: 'POST', headers, body });
const { id } = (await packet.json()) as { id: string };
now = new Date('2030-01-01T01:00:00Z');
await other.runJobs();
const later = await fetch(\`\${other.url}/api/v1/packets/\${id}\`, { headers });
console.log(other.adminKey, ((await later.json()) as { status: string }).status);
await other.stop();
`;

const client = `
import { ApiError, createFallbackClient, createHandoffClient } from 'baton';
import { createHandoff } from 'baton/server';

await using handoff = await createHandoff();
const client = createHandoffClient({ baseUrl: handoff.url, apiKey: handoff.adminKey });
const { id } = await client.createPacket({
  body: {
    metadata: { source_agent: { id: 'a', name: 'A', framework: 'x' }, target_agent: { id: 'b', name: 'B' } },
    context: { summary: 's' },
  },
});
for await (const packet of client.listPackets.items({ query: { status: 'created' } })) console.log(packet.id === id);
try {
  await client.getPacket({ params: { id: 'unknown' } });
} catch (error) {
  console.log(error instanceof ApiError && error.status_code);
}
const unused = () => {
  // @ts-expect-error the id is required
  void client.getPacket();
  // @ts-expect-error a packet needs its context
  void client.batchCreate({ body: { packets: [{ metadata: { source_agent: { id: 'a', name: 'A', framework: 'x' }, target_agent: { id: 'b', name: 'B' } } }] } });
  return createFallbackClient({ baseUrl: 'http://localhost:8000' }).listChains();
};
console.log(typeof unused);
`;

describe('The packed package', () => {
  test('has types that a strict TypeScript program accepts [H292]', () => {
    writeFileSync(join(folder, 'suite.ts'), suite);
    writeFileSync(join(folder, 'client.ts'), client);
    const options = {
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      types: ['node'],
      outDir: '.',
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['suite.ts', 'client.ts'] }));
    const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--checkers', '1'], { encoding: 'utf8' });
    assert.equal(stdout, '');
    assert.equal(status, 0);
  });

  test('runs a service in memory in one line, and stops it [H292]', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['suite.js'], { cwd: folder, encoding: 'utf8', env: {} });
    assert.equal(stderr, '');
    assert.equal(stdout, '200 default\n0\n200\nan-admin-key-of-our-own expired\n');
    assert.equal(status, 0);
  });

  test('has clients of the services', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['client.js'], { cwd: folder, encoding: 'utf8', env: {} });
    assert.equal(stderr, '');
    assert.equal(stdout, 'true\n404\nfunction\n');
    assert.equal(status, 0);
  });

  test('has programs that npx runs: help, the service, and a list of its packets', async (t) => {
    const npx = (...args: string[]) => spawnSync('npx', ['--no-install', ...args], { cwd: folder, env, encoding: 'utf8' });
    const help = npx('service-cli', '--help');
    assert.deepEqual([help.status, help.stdout.split('\n')[0]], [0, 'Usage: service-cli [options] [command]'], help.stderr);
    assert.match(npx('fallback-service', '--help').stdout, /^Usage: fallback-service/);
    const program = join(folder, 'node_modules/.bin/service-cli');
    const child = spawn(program, ['serve', '--host', '127.0.0.1', '--port', '0'], {
      cwd: folder,
      env: { PATH: `${join(folder, 'node_modules/.bin')}${delimiter}${env.PATH}`, SERVICE_ADMIN_KEY: 'an-admin-key-of-our-own' },
    });
    t.after(() => child.kill('SIGKILL'));
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    for await (const line of createInterface({ input: child.stdout })) {
      const [, address] = /^handoff listening on (\S+)/.exec(line) ?? [];
      if (address === undefined) continue;
      const page = await fetch(`${address}/docs/assets/swagger-ui.css`);
      assert.equal(page.status, 200);
      await page.text();
      const list = npx('service-cli', 'list', '--server-url', address, '--api-key', 'an-admin-key-of-our-own');
      assert.deepEqual([list.status, list.stdout], [0, '']);
      assert.match(list.stderr, /No packets\.\n$/);
      break;
    }
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
  });

  test('can be published, as the clients can: npm has nothing to correct', () => {
    for (const name of ['baton', 'baton-client']) {
      const archive = join(folder, `${name}-${packageJson.version}.tgz`);
      // A dry run sends nothing, so no registry is there.
      const publish = ['publish', '--dry-run', '--registry=http://127.0.0.1:9', '--fetch-retries=0', archive];
      const { status, stdout, stderr } = spawnSync('npm', publish, { cwd: folder, env, encoding: 'utf8' });
      assert.deepEqual([status, stdout], [0, `+ ${name}@${packageJson.version}\n`], stderr);
      const warnings = stderr.split('\n').filter((line) => /^npm (warn|error)/.test(line) && !/logged in|Unknown .*config/.test(line));
      assert.deepEqual(warnings, []);
    }
  });

  test('brings no install script but that of Node, which its users install with it', () => {
    const scripts = needed.filter(
      (place) => (packageLock.packages as Record<string, { hasInstallScript?: boolean }>)[place]!.hasInstallScript,
    );
    assert.deepEqual(scripts, ['node_modules/node']);
  });

  test('contains no sources and no tests', () => {
    const files = execFileSync('tar', ['-tzf', join(folder, `baton-${packageJson.version}.tgz`)], { encoding: 'utf8' })
      .trim()
      .split('\n');
    const places = new Set(files.map((file) => file.split('/')[1]));
    assert.deepEqual([...places].sort(), ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'openapi', 'package.json']);
    assert.deepEqual(
      files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts')),
      [],
    );
  });
});

/** A program of a user of `baton-client`. It fails if anything needs Node's types, or a field that the API does not have. */
const clientProgram = `
import { ApiError, createFallbackClient, createHandoffClient, verifyWebhook, WebhookError } from 'baton-client';
import type { FallbackAnswer, HandoffAnswer, HandoffBody, HandoffClient, HandoffTypes, Packet, StreamEvent } from 'baton-client';

export const body: HandoffBody<'claimPacket'> = { agent_id: 'a', lease_seconds: 60 };
export const chains: FallbackAnswer<'listChains'> = [];
export const actions = (packet: HandoffAnswer<'getPacket'>): HandoffTypes['PendingAction'][] => packet.actions.pending;
// @ts-expect-error a hook has no such field
export const hook: HandoffTypes['WebhookRequest'] = { url: 'https://example.com', secret: 's', evnts: [] };

export async function work(handoffUrl: string, apiKey: string, fallbackUrl: string): Promise<unknown[]> {
  const client: HandoffClient = createHandoffClient({ baseUrl: handoffUrl, apiKey });
  let opened: () => void;
  const open = new Promise<void>((resolve) => { opened = resolve; });
  const listener = createHandoffClient({ baseUrl: handoffUrl, apiKey, onStep: ({ kind }) => kind === 'answer' && opened() });
  const events = listener.events({ signal: AbortSignal.timeout(20_000) });
  const first = events.next();
  await open;
  const packet: Packet = await client.createPacket({
    body: {
      metadata: { source_agent: { id: 'a', name: 'A', framework: 'x' }, target_agent: { id: 'b', name: 'B' } },
      context: { summary: 's' },
    },
  });
  const status: 'created' | 'claimed' | 'in_progress' | 'awaiting_human' | 'completed' | 'failed' | 'expired' = packet.status;
  // @ts-expect-error a packet has no such field
  void packet.sumary;
  // @ts-expect-error the id is required
  void (() => client.getPacket());
  const refused = await client.getPacket({ params: { id: 'unknown' } }).catch((error: unknown) => error instanceof ApiError && error.code);
  const unsigned = await verifyWebhook('secret', {}, '{}').catch((error: unknown) => error instanceof WebhookError);
  if (unsigned !== true) throw new Error('The webhook has no signature.');
  const event = (await first).value as StreamEvent;
  await events.return();
  const chains = await createFallbackClient({ baseUrl: fallbackUrl }).listChains();
  return [status, refused, event.type, event.data?.status, chains.length];
}
`;

describe('The package of the clients alone', () => {
  const place = join(folder, 'client-only');
  const archive = join(folder, `baton-client-${packageJson.version}.tgz`);

  before(() => {
    mkdirSync(place);
    writeFileSync(join(place, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(place, 'program.ts'), clientProgram);
    const options = ['--offline', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', '--prefix', place, ...options, archive], { cwd: place, env, encoding: 'utf8' });
  });

  /** Starts both services and runs the compiled program against them with a Node. */
  async function ran(t: TestContext, node: string) {
    const handoff = await (await startService(t)).handoff.start();
    const fallback = await (await startFallback(t)).fallback.start();
    const script = `const { work } = await import('./program.js');
      console.log(JSON.stringify(await work(...${JSON.stringify([handoff, adminKey, fallback])})));`;
    return new Promise<{ output: string; problems: string }>((resolve) => {
      const child = spawn(node, ['--input-type=module', '-e', script], { cwd: place, env: { PATH: env.PATH }, timeout: 30_000 });
      const found = { output: '', problems: '' };
      child.stdout.setEncoding('utf8').on('data', (text: string) => (found.output += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (found.problems += text));
      child.once('close', () => resolve(found));
    });
  }

  test("has no dependencies, the services' version, and nothing but the clients", async (t) => {
    assert.deepEqual(
      readdirSync(join(place, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['baton-client'],
    );
    const { dependencies, peerDependencies, version } = JSON.parse(
      readFileSync(join(place, 'node_modules/baton-client/package.json'), 'utf8'),
    );
    assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
    const handoff = await (await startService(t)).handoff.start();
    const body = (await (await fetch(handoff)).json()) as { version: string };
    assert.deepEqual([version, body.version], [packageJson.version, packageJson.version]);
    assert.ok(statSync(archive).size < 200_000, `${statSync(archive).size} bytes`);
  });

  for (const [module, moduleResolution] of [
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ])
    test(`has types for a strict program with moduleResolution ${moduleResolution}, without those of Node`, () => {
      const options = { target: 'es2022', lib: ['es2022', 'dom'], module, moduleResolution, strict: true, types: [], skipLibCheck: false };
      writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['program.ts'] }));
      const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', place, '--checkers', '1'], { encoding: 'utf8' });
      assert.equal(stdout, '');
      assert.equal(status, 0);
    });

  test('works on this Node and on Node 20', async (t) => {
    for (const node of [process.execPath, olderNode()]) {
      assert.deepEqual(await ran(t, node), { output: '["created","NOT_FOUND","packet.created","created",0]\n', problems: '' }, node);
    }
  });

  test('can be bundled for browsers: nothing of it needs Node', async () => {
    const warnings: string[] = [];
    const bundle = await build({
      root: place,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        lib: { entry: 'program.js', formats: ['es'] },
        rolldownOptions: { onLog: (_, { message }) => void warnings.push(message) },
      },
    });
    const [{ output }] = bundle as unknown as [{ output: { code: string; imports: string[] }[] }];
    assert.deepEqual(warnings, []);
    assert.deepEqual(
      output.flatMap(({ imports }) => imports),
      [],
    );
    assert.doesNotMatch(output[0]!.code, /\bprocess\.|\brequire\(|node:|__vite-browser-external|\bBuffer\b/);
    assert.ok(output[0]!.code.length < 56_000, `${output[0]!.code.length} characters`);
  });
});

/** The program of a Node 20: that of the system, or one from npm. */
function olderNode(): string {
  const version = (node: string) => spawnSync(node, ['--version'], { encoding: 'utf8', env }).stdout ?? '';
  if (version('node').startsWith('v20.')) return 'node';
  return execFileSync('npm', ['exec', '--yes', '--package=node@20', '--', 'node', '-p', 'process.execPath'], {
    encoding: 'utf8',
    env,
  }).trim();
}

describe('On a Node older than that of `engines`, the package', () => {
  test('can be imported, and says what a service needs when one is created', () => {
    const script = `
      import { createHandoff, createFallback } from 'baton/server';
      for (const create of [createHandoff, createFallback]) await create().catch(({ message }) => console.log(message));`;
    const { stdout, stderr } = spawnSync(olderNode(), ['--input-type=module', '-e', script], { cwd: folder, env, encoding: 'utf8' });
    assert.equal(stderr, '');
    assert.match(
      stdout,
      /^(baton\/server needs Node 24\.6 or newer; this is Node 20\.[\d.]+\. The client of baton and baton-client need Node 20\.\n){2}$/,
    );
  });
});
