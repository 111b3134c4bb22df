import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { knownVariables, unknownVariables } from '../src/variables.ts';
import { adminKey } from './support/service.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Running {
  readonly child: ChildProcess;
  /** The address of the handoff service, once it has told it. */
  readonly address: Promise<string>;
  readonly ended: Promise<{ code: number | null; stderr: string }>;
}

/** Runs `npm start -- <flags>` as a user does: npm, a shell, and the program below it. */
function npmStart(t: TestContext, flags: readonly string[], environment: Record<string, string> = {}): Running {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SERVICE_|npm_)/.test(name));
  const child = spawn('npm', ['start', '--silent', '--', ...flags], {
    cwd: root,
    // A group of its own, so that whatever is left of it can be ended.
    detached: true,
    env: {
      ...Object.fromEntries(inherited),
      SERVICE_DATABASE_URL: 'sqlite::memory:',
      SERVICE_ADMIN_KEY: adminKey,
      SERVICE_LOG_LEVEL: 'error',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stderr }));
  const address = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, found] = /^handoff listening on (\S+)$/.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`It ended before it listened: ${stderr}`)));
  });
  address.catch(() => undefined);
  t.after(async () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // The group is empty.
    }
    await ended;
  });
  return { child, address, ended };
}

const isUp = (address: string) =>
  fetch(`${address}/health`).then(
    (answer) => answer.ok,
    () => false,
  );

describe('npm start', { concurrency: 2 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`ends the services and exits 0 at ${signal} to npm alone`, { timeout: 60_000 }, async (t) => {
      const { child, address, ended } = npmStart(t, ['--host', '127.0.0.1', '--port', '0', '--fallback-port', '0']);
      const base = await address;
      assert.ok(await isUp(base));
      child.kill(signal);
      const { code, stderr } = await ended;
      assert.equal(stderr, '');
      assert.equal(code, 0);
      assert.equal(await isUp(base), false);
    });
  }

  test('listens where its flags say, and flags beat variables', { timeout: 60_000 }, async (t) => {
    const { address } = npmStart(t, ['--host', '127.0.0.1', '--handoff-port', '0', '--fallback-port', '0'], { SERVICE_PORT: 'x' });
    assert.match(await address, /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  test('a port in use stops the start with a sentence that names the port and the flag', { timeout: 60_000 }, async (t) => {
    const other = createServer();
    await new Promise<void>((resolve) => {
      other.listen(0, '127.0.0.1', resolve);
    });
    t.after(() => other.close());
    const { port } = other.address() as { port: number };
    const { code, stderr } = await npmStart(t, ['--host', '127.0.0.1', '--port', String(port), '--fallback-port', '0']).ended;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^handoff: Port ${port} is in use by another program; choose another one with --port\\.`));
  });

  test('a flag that is unknown or can not be used stops the start with a sentence', { timeout: 60_000 }, async (t) => {
    const wrong = [
      [['--prot', '8400'], "error: unknown option '--prot'\n(Did you mean --port?)\n"],
      [['--port', 'abc'], "error: option '--port <port>' argument 'abc' is invalid. A port is a whole number from 0 to 65535.\n"],
      [['8400'], 'error: too many arguments. Expected 0 arguments but got 1.\n'],
    ] as const;
    for (const [flags, sentence] of wrong) {
      const { code, stderr } = await npmStart(t, flags).ended;
      assert.equal(code, 1);
      assert.equal(stderr, sentence);
    }
  });

  test('--help lists the flags and starts nothing', { timeout: 60_000 }, async (t) => {
    const { child, ended } = npmStart(t, ['--help']);
    let out = '';
    child.stdout!.on('data', (chunk) => {
      out += chunk;
    });
    assert.equal((await ended).code, 0);
    for (const flag of ['--host', '--handoff-port', '--fallback-port', '--port', '--help'])
      assert.ok(out.includes(`  ${flag}`) || out.includes(flag));
    assert.ok(!out.includes('listening'));
  });

  test('names unknown SERVICE_* variables in one warning', { timeout: 60_000 }, async (t) => {
    const settings = { SERVICE_RATE_LIMT_PER_MINUTE: '5', SERVICE_DATABASE: 'x' };
    const { child, address, ended } = npmStart(t, ['--host', '127.0.0.1', '--port', '0', '--fallback-port', '0'], settings);
    await address;
    child.kill('SIGTERM');
    const { stderr } = await ended;
    assert.equal(
      stderr,
      'warning: not read, because no setting has this name: SERVICE_DATABASE (the nearest known name is SERVICE_DATABASE_URL), ' +
        'SERVICE_RATE_LIMT_PER_MINUTE (the nearest known name is SERVICE_RATE_LIMIT_PER_MINUTE)\n',
    );
  });
});

describe('The warning of unknown variables', () => {
  test('is not given where every SERVICE_* variable is known', () => {
    const environment = Object.fromEntries(knownVariables.map((name) => [name, 'x']));
    assert.equal(unknownVariables({ ...environment, PATH: '/bin' }), undefined);
  });
});
