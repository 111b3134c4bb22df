import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { knownVariables, unknownVariables } from '../src/programs/variables.ts';
import { listenFor } from './support/listen.ts';
import { adminKey } from './support/service.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const handoffLine = /^handoff listening on (\S+)/;
const startedLine = /"service":"handoff".*"pid":(\d+).*"msg":"started"/;

interface Running {
  readonly child: ChildProcess;
  /** The addresses of the services, once they are printed. */
  readonly handoff: Promise<string>;
  readonly fallback: Promise<string>;
  /** The process id of the handoff service, from its log. */
  readonly handoffPid: Promise<string>;
  /** The address and process id of the next start of the handoff service. */
  nextHandoff(): { address: Promise<string>; pid: Promise<string> };
  /** Resolves once a line on standard error contains the text. */
  readonly logged: (text: string) => Promise<void>;
  readonly ended: Promise<{ code: number | null; stderr: string }>;
}

/** Runs `npm start -- <flags>` as a user does: npm, a shell, and the program below it. */
const npmStart = (t: TestContext, flags: readonly string[], environment: Record<string, string> = {}) =>
  run(t, ['npm', 'start', '--silent', '--', ...flags], environment);

/** Runs the command that npm runs, without npm. */
const start = (t: TestContext, flags: readonly string[], environment: Record<string, string> = {}) =>
  run(t, [process.execPath, 'src/programs/start.ts', ...flags], environment);

function run(t: TestContext, [command = '', ...args]: readonly string[], environment: Record<string, string>): Running {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SERVICE_|npm_)/.test(name));
  const child = spawn(command, args, {
    cwd: root,
    // In its own process group, so that every process that is left can be killed.
    detached: true,
    env: {
      ...Object.fromEntries(inherited),
      SERVICE_DATABASE_URL: 'sqlite::memory:',
      SERVICE_ADMIN_KEY: adminKey,
      SERVICE_API_KEYS: adminKey,
      SERVICE_LOG_LEVEL: 'error',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const errors: string[] = [];
  const onError = new Set<() => void>();
  createInterface({ input: child.stderr }).on('line', (line) => {
    errors.push(line);
    for (const look of onError) look();
  });
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stderr: errors.map((line) => `${line}\n`).join(''),
  }));
  const lines = createInterface({ input: child.stdout });
  /** The match of the pattern in the first line of standard output that it matches. */
  const found = (pattern: RegExp) => {
    const finding = new Promise<string>((resolve, reject) => {
      lines.on('line', (line) => {
        const [, text] = pattern.exec(line) ?? [];
        if (text !== undefined) resolve(text);
      });
      void ended.then(({ stderr }) => reject(new Error(`It ended before it said ${pattern}: ${stderr}`)));
    });
    finding.catch(() => undefined);
    return finding;
  };
  t.after(async () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // The group is empty.
    }
    await ended;
  });
  const logged = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (errors.some((line) => line.includes(text))) resolve();
      };
      onError.add(look);
      look();
    });
  return {
    child,
    handoff: found(handoffLine),
    fallback: found(/^fallback listening on (\S+)$/),
    handoffPid: found(startedLine),
    nextHandoff: () => ({ address: found(handoffLine), pid: found(startedLine) }),
    logged,
    ended,
  };
}

/** A port that another server listens on. */
async function takenPort(t: TestContext): Promise<string> {
  return String((await listenFor(t, createServer())).port);
}

/** Flags for free ports of the loopback. */
const anywhere = ['--host', '127.0.0.1', '--port', '0', '--fallback-port', '0', '--fallback-storage', 'memory'];

const isUp = (address: string) =>
  fetch(`${address}/health`).then(
    (answer) => answer.ok,
    () => false,
  );

describe('npm start', { concurrency: 2 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`ends both services and exits 0 at ${signal} to npm only [H285]`, { timeout: 60_000 }, async (t) => {
      const { child, handoff, fallback, ended } = npmStart(t, anywhere);
      const bases = [await handoff, await fallback];
      for (const base of bases) assert.ok(await isUp(base));
      child.kill(signal);
      const { code, stderr } = await ended;
      assert.equal(stderr, '');
      assert.equal(code, 0);
      for (const base of bases) assert.equal(await isUp(base), false);
    });
  }

  test('listens where its flags say; flags take precedence over variables [H285]', { timeout: 60_000 }, async (t) => {
    const { handoff, fallback } = npmStart(
      t,
      ['--host', '127.0.0.1', '--handoff-port', '0', '--fallback-port', '0', '--fallback-storage', 'memory'],
      {
        SERVICE_PORT: 'x',
      },
    );
    for (const address of [handoff, fallback]) assert.match(await address, /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  test('reports a port in use with the port and the flag, without ending the other service [H285, F83]', {
    timeout: 60_000,
  }, async (t) => {
    const port = await takenPort(t);
    const cases = [
      { flags: ['--port', port, '--fallback-port', '0'], failing: 'handoff', other: 'fallback', flag: '--port' },
      { flags: ['--port', '0', '--fallback-port', port], failing: 'fallback', other: 'handoff', flag: '--fallback-port' },
    ] as const;
    for (const { flags, failing, other, flag } of cases) {
      const running = npmStart(t, ['--host', '127.0.0.1', '--fallback-storage', 'memory', ...flags]);
      const base = await running[other];
      await running.logged(`The ${failing} service has ended (exit code 1).`);
      await running.logged(`The ${other} service continues.`);
      assert.ok(await isUp(base));
      running.child.kill('SIGTERM');
      const { code, stderr } = await running.ended;
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`^${failing}: Port ${port} is in use by another program; choose another one with ${flag}\\.`));
    }
  });

  test('a killed service is started again while the other continues; killing the start program ends both [F83]', {
    timeout: 60_000,
  }, async (t) => {
    const running = start(t, anywhere, { SERVICE_LOG_LEVEL: 'info', SERVICE_LOG_FORMAT: 'json' });
    const { child, fallback, logged, ended } = running;
    const [pid, base] = [await running.handoffPid, await fallback];
    const { address, pid: nextPid } = running.nextHandoff();
    process.kill(Number(pid), 'SIGKILL');
    await logged('The handoff service has ended (signal SIGKILL).');
    await logged('The handoff service starts again in 1 s.');
    assert.ok(await isUp(base));
    assert.ok(await isUp(await address));
    assert.notEqual(await nextPid, pid);
    child.kill('SIGKILL');
    // The shared standard output closes when the last process has ended.
    await ended;
    assert.equal(await isUp(base), false);
    assert.equal(await isUp(await address), false);
  });

  test('an unknown or invalid flag stops the start with a sentence [H285]', { timeout: 60_000 }, async (t) => {
    const wrong = [
      [['--prot', '8400'], "error: unknown option '--prot'\n(Did you mean --port?)\n"],
      [['--port', 'abc'], "error: option '--port <port>' argument 'abc' is invalid. A port is a whole number from 0 to 65535.\n"],
      [['8400'], "error: unexpected argument '8400'\n"],
    ] as const;
    for (const [flags, sentence] of wrong) {
      const { code, stderr } = await npmStart(t, flags).ended;
      assert.equal(code, 2);
      assert.equal(stderr, sentence);
    }
    // npm takes the flags before `--` itself.
    const { code, stderr } = await run(t, ['npm', 'start', '--silent', '--port', '8400'], {}).ended;
    assert.equal(code, 2);
    assert.match(stderr, /^error: npm took --port as its own setting; put -- before it: npm start -- --port <port>$/m);
  });

  test('--help lists the flags and starts nothing [H285]', { timeout: 60_000 }, async (t) => {
    const { child, ended } = npmStart(t, ['--help']);
    let out = '';
    child.stdout!.on('data', (chunk) => {
      out += chunk;
    });
    assert.equal((await ended).code, 0);
    for (const flag of [
      '--host',
      '--handoff-port',
      '--fallback-port',
      '--port',
      '--fallback-storage',
      '--allow-open',
      '--allow-live',
      '--help',
    ])
      assert.match(out, new RegExp(`^  (-h, )?${flag} `, 'm'));
    assert.ok(!out.includes('listening'));
  });

  test('names unknown SERVICE_* variables in one warning [H281]', { timeout: 60_000 }, async (t) => {
    const settings = { SERVICE_RATE_LIMT_PER_MINUTE: '5', SERVICE_DATABASE: 'x' };
    const { child, fallback, ended } = npmStart(t, anywhere, settings);
    await fallback;
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
  test('suggests the setting that was meant, even if its end is missing', () => {
    for (const [name, meant] of [
      ['SERVICE_RATE_LMIT', 'SERVICE_RATE_LIMIT_PER_MINUTE'],
      ['SERVICE_DATABASE', 'SERVICE_DATABASE_URL'],
      ['SERVICE_PROT', 'SERVICE_PORT'],
      ['SERVICE_ADMIN', 'SERVICE_ADMIN_KEY'],
    ] as const)
      assert.match(unknownVariables({ [name]: 'x' }) ?? '', new RegExp(`the nearest known name is ${meant}\\)`));
  });

  test('suggests no setting for a name that is near none', () => {
    for (const name of ['SERVICE_FOO', 'SERVICE_WEBHOOK_QUEUE_LENGTH'])
      assert.equal(unknownVariables({ [name]: 'x' }), `not read, because no setting has this name: ${name}`);
  });

  test('is not given if every SERVICE_* variable is known [H281]', () => {
    const environment = Object.fromEntries(knownVariables.map((name) => [name, 'x']));
    assert.equal(unknownVariables({ ...environment, PATH: '/bin' }), undefined);
  });
});
