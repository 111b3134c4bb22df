import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A program that a scripted model drives, and whose hook asks for approvals. */
export interface HookedProgram {
  readonly name: string;
  /** Where its commands run. */
  readonly folder: string;
  /** Starts a session, or resumes the one with this id, with a message of its person. */
  run(session?: string): Promise<Run>;
}

/** A session that runs. */
export interface Run {
  readonly session: string;
  /** Resolves when the turn is over, with what the program said about it. */
  readonly ended: Promise<string>;
  /** Ends the program at once, as a crash does; resolves when it has ended. */
  kill(): Promise<void>;
}

interface Where {
  /** The folder with `node_modules`. */
  readonly root: string;
  readonly model: string;
  /** The command of the hook, and what it needs. Not in the command itself: the model is shown that of a hook that fails. */
  readonly hook: string;
  readonly environment: Readonly<Record<string, string>>;
}

const binary = (root: string, name: string) => join(root, 'node_modules', '.bin', name);

/** A new folder of a program. */
function folderOf({ root }: Where, name: string): { work: string; home: string } {
  const made = {
    work: join(root, `${name}-${randomUUID().slice(0, 8)}`, 'work'),
    home: join(root, `home-${name}-${randomUUID().slice(0, 8)}`),
  };
  for (const folder of Object.values(made)) mkdirSync(folder, { recursive: true });
  return made;
}

/** Claude Code, as `claude -p` with the hook `PreToolUse`. */
export function claudeCode(where: Where): HookedProgram {
  const { work, home } = folderOf(where, 'claude');
  mkdirSync(join(work, '.claude'));
  const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: where.hook, timeout: 600 }] }] };
  writeFileSync(join(work, '.claude', 'settings.json'), JSON.stringify({ hooks }));
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, CLAUDE_CONFIG_DIR: join(home, '.claude'), ANTHROPIC_BASE_URL: where.model },
    ...where.environment,
    ...{ ANTHROPIC_API_KEY: 'scripted', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  };
  return {
    name: 'Claude Code',
    folder: work,
    async run(session) {
      const id = session ?? randomUUID();
      const of = session === undefined ? ['--session-id', id] : ['--resume', id];
      const args = ['-p', session === undefined ? 'Make the file.' : 'Go on.', '--output-format', 'json', ...of];
      const child = spawn(binary(where.root, 'claude'), args, { cwd: work, env: env as NodeJS.ProcessEnv });
      child.stdin.end();
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (part: Buffer) => {
          text += part;
        });
      const ended = new Promise<string>((resolve) => child.on('close', (code) => resolve(code === 0 ? text : `exit ${code}: ${text}`)));
      return {
        session: id,
        ended,
        async kill() {
          child.kill('SIGKILL');
          await ended;
        },
      };
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: messages of the app server have many shapes.
type Message = any;

/** A connection to the app server of Codex, which is what its own surfaces speak to. */
class AppServer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #said: ((message: Message) => void)[] = [];
  #id = 0;

  constructor(program: string, cwd: string, home: string, environment: Where['environment']) {
    this.#child = spawn(program, ['app-server'], { cwd, env: { ...process.env, ...environment, CODEX_HOME: home } });
    this.#child.stderr.resume();
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const message = JSON.parse(line);
      if (message.id !== undefined && message.method === undefined) this.#waiting.get(message.id)?.(message);
      else for (const told of this.#said) told(message);
    });
  }

  async call(method: string, params: object): Promise<Message> {
    this.#id += 1;
    const id = this.#id;
    const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async begin(): Promise<void> {
    await this.call('initialize', { clientInfo: { name: 'tests', title: 'Tests', version: '1' } });
    this.#child.stdin.write('{"jsonrpc":"2.0","method":"initialized"}\n');
  }

  /** Resolves with the first message for which `is` holds. */
  first(is: (message: Message) => boolean): Promise<Message> {
    return new Promise((resolve) => this.#said.push((message) => is(message) && resolve(message)));
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}

/** Codex, by its app server with the hook `PermissionRequest`, which it trusts. */
export function codex(where: Where): HookedProgram {
  const { work, home } = folderOf(where, 'codex');
  const hooks = { PermissionRequest: [{ hooks: [{ type: 'command', command: where.hook, timeout: 600 }] }] };
  writeFileSync(join(home, 'hooks.json'), JSON.stringify({ hooks }));
  const settings = (trust: string) => `model = "scripted"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.scripted]
name = "Scripted"
base_url = "${where.model}/v1"
wire_api = "responses"
requires_openai_auth = false
[projects."${work}"]
trust_level = "trusted"
${trust}`;
  const program = binary(where.root, 'codex');
  const config = join(home, 'config.toml');
  writeFileSync(config, settings(''));

  /** A person trusts the hook once; this is what Codex then writes down. */
  async function trustHook(): Promise<void> {
    const server = new AppServer(program, work, home, where.environment);
    await server.begin();
    const { data } = await server.call('hooks/list', { cwds: [work] });
    const [{ key, currentHash }] = data[0].hooks;
    await server.kill();
    writeFileSync(config, settings(`[hooks.state."${key}"]\ntrusted_hash = "${currentHash}"\n`));
  }

  let trusted: Promise<void> | undefined;
  return {
    name: 'Codex',
    folder: work,
    async run(session) {
      trusted ??= trustHook();
      await trusted;
      const server = new AppServer(program, work, home, where.environment);
      await server.begin();
      const { thread } =
        session === undefined
          ? await server.call('thread/start', { cwd: work, approvalPolicy: 'on-request' })
          : await server.call('thread/resume', { threadId: session, cwd: work });
      const asked = server.first(({ method }) => /requestApproval$/.test(method ?? ''));
      const completed = server.first(({ method }) => method === 'turn/completed');
      const text = session === undefined ? 'Make the file.' : 'Go on.';
      await server.call('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
      const ended = Promise.race([asked, completed]).then(async (message) => {
        await server.kill();
        return JSON.stringify(message);
      });
      return { session: thread.id, ended, kill: () => server.kill() };
    },
  };
}
