import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { freePort } from '../../src/kit/free-port.ts';
import { createHandoff } from '../../src/server.ts';
import { type ScriptedModel, startModel } from './model.ts';
import { claudeCode, codex, type HookedProgram, type Run } from './programs.ts';

/**
 * `npx node tools/hooks/run.ts FOLDER [claude|codex]`: runs Claude Code and Codex from npm, which are kept in the folder, against a
 * scripted model, with `service-cli approve-hook` as their hook, and prints what became of each call. Needs no account; by hand, for five
 * to ten minutes. docs/approvals.md has when it was run.
 */
const versions = {
  '@anthropic-ai/claude-code': process.env.CLAUDE_VERSION ?? '2.1.197',
  '@openai/codex': process.env.CODEX_VERSION ?? '0.171.0',
};
const root = resolve(process.argv[2] ?? 'hooks');
const only = process.argv[3];
const cli = fileURLToPath(new URL('../../bin/service-cli.js', import.meta.url));
const adminKey = 'hooks-admin-key-0123456789';

/** Installs the programs, unless the folder has them. */
function install(): void {
  if (existsSync(join(root, 'node_modules', '@openai', 'codex'))) return;
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'package.json'), '{"private": true}');
  const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
  execFileSync('npm', ['install', '--no-fund', '--no-audit', ...packages], { cwd: root, stdio: 'inherit' });
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a script looks into bodies of every shape.
  readonly body: any;
}

/** A service in memory, with the keys of the hook and of a person. */
async function startService() {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const handoff = await createHandoff({ port, host: '127.0.0.1', databaseUrl: 'sqlite::memory:', adminKey });
  const call = async (method: string, path: string, body?: object, key = adminKey): Promise<Answer> => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const answer = await fetch(`${address}/api/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, body: await answer.json() };
  };
  const keyOf = async (rights: object) => (await call('POST', '/keys', { name: 'k', ...rights })).body.key as string;
  const [ofHook, ofDana] = [await keyOf({ scopes: ['read', 'work'] }), await keyOf({ scopes: ['read', 'respond'], responder: 'dana' })];
  const open = async () => (await call('GET', '/packets/awaiting?view=full', undefined, ofDana)).body.packets as { id: string }[];
  return {
    address,
    ofHook,
    stop: () => handoff.stop(),
    /** How many questions are open. */
    open: async () => (await open()).length,
    /** Waits for a question. */
    async asked(): Promise<string> {
      for (;;) {
        const [packet] = await open();
        if (packet !== undefined) return packet.id;
        await new Promise((wait) => setTimeout(wait, 200));
      }
    },
    async decide(id: string, decision: object): Promise<void> {
      const { status, body } = await call('POST', `/packets/${id}/respond`, { responded_by: 'dana', ...decision }, ofDana);
      assert.equal(status, 200, JSON.stringify(body));
    },
  };
}

type Service = Awaited<ReturnType<typeof startService>>;

/** A program with a model and a hook of its own. */
interface Stage {
  readonly program: HookedProgram;
  readonly model: ScriptedModel;
  readonly service: Service;
  /** What has run, in order: `asked` is the command of the model, `changed` that of the person. */
  made(): string[];
}

async function stageOf(make: typeof codex, service: Service, { flags = '', url = service.address } = {}): Promise<Stage> {
  const model = await startModel({ name: 'Bash', input: { command: 'echo asked >> made', description: 'Appends a line' } });
  const hook = `${process.execPath} ${cli} approve-hook ${flags}`.trim();
  const environment = { SERVICE_URL: url, SERVICE_API_KEY: service.ofHook };
  const program = make({ root, model: model.url, hook, environment });
  const file = join(program.folder, 'made');
  const made = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []);
  return { program, model, service, made };
}

/** Runs a session to its end, in which a person decides once. */
async function decided({ program, service }: Stage, decision: object): Promise<string> {
  const run = await program.run();
  await service.decide(await service.asked(), decision);
  return run.ended;
}

/** What a person decides, and what must become of the call: what has run, and what the model is told. */
async function simple(make: typeof codex, service: Service): Promise<void> {
  const edit = { decision: 'edit', arguments: { command: 'echo changed >> made', description: 'Appends a line' } };
  const isCodex = make === codex;
  const cases: [string, object, string | undefined, RegExp][] = [
    ['approved', { decision: 'approve' }, 'asked', /./],
    ['edited', edit, isCodex ? undefined : 'changed', isCodex ? /echo changed/ : /./],
    ['rejected', { decision: 'reject', message: 'Not on a Friday' }, undefined, /Not on a Friday/],
  ];
  for (const [name, decision, line, told] of cases) {
    const stage = await stageOf(make, service);
    const said = await decided(stage, decision);
    const made = stage.made();
    console.log(
      `${stage.program.name}, ${name}: made ${made.join() || 'nothing'}; the model was told ${stage.model.results.join(' | ').slice(0, 300)}`,
    );
    assert.deepEqual(made, line === undefined ? [] : [line], said);
    assert.match(stage.model.results.join(), told);
    stage.model.stop();
  }
}

/** Without the service nothing runs. */
async function away(make: typeof codex, service: Service): Promise<void> {
  const stage = await stageOf(make, service, { url: 'http://127.0.0.1:9' });
  const said = await (await stage.program.run()).ended;
  console.log(
    `${stage.program.name}, service away: made ${stage.made().join() || 'nothing'}; the model was told ${stage.model.results.join().slice(0, 300)}`,
  );
  assert.deepEqual(stage.made(), [], said);
  stage.model.stop();
}

/** The program is killed while its hook waits; a person approves; the session is resumed. The call runs once, and only when approved. */
async function killed(make: typeof codex, service: Service): Promise<void> {
  const stage = await stageOf(make, service);
  const first: Run = await stage.program.run();
  const id = await service.asked();
  await first.kill();
  await service.decide(id, { decision: 'approve' });
  assert.deepEqual(stage.made(), [], 'the approval alone runs nothing');
  const resumed = await stage.program.run(first.session);
  let again = 0;
  let isOver = false;
  const ended = resumed.ended.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((wait) => setTimeout(wait, 1000));
    if ((await service.open()) === 0) continue;
    again += 1;
    await service.decide(await service.asked(), { decision: 'approve' });
  }
  const said = await ended;
  const calls = stage.model.calls.length;
  console.log(
    `${stage.program.name}, killed while the hook waits, and resumed: made ${stage.made().join()}, ${calls} calls, asked again ${again} times`,
  );
  assert.deepEqual(stage.made(), ['asked'], said);
  // Claude Code gives the call of the resumed session a new id; Codex names a call by session and arguments.
  assert.equal(again, make === codex ? 0 : 1);
  stage.model.stop();
}

/** The session of `claude -p` ends with the question, and is resumed once a person has decided. */
async function deferred(service: Service): Promise<void> {
  const stage = await stageOf(claudeCode, service, { flags: '--defer' });
  const first = await stage.program.run();
  const said = await first.ended;
  assert.match(said, /tool_deferred/, `${said} ${stage.model.results}`);
  await service.decide(await service.asked(), { decision: 'approve' });
  const last = await (await stage.program.run(first.session)).ended;
  console.log(`Claude Code, deferred and resumed: made ${stage.made().join()}`);
  assert.deepEqual(stage.made(), ['asked'], `${last} ${stage.model.results}`);
  stage.model.stop();
}

install();
const service = await startService();
for (const [name, make] of Object.entries({ claude: claudeCode, codex })) {
  if (only !== undefined && only !== name) continue;
  await simple(make, service);
  await away(make, service);
  if (make === claudeCode) await deferred(service);
  await killed(make, service);
}
await service.stop();
console.log(
  `Run with ${Object.entries(versions)
    .map((pair) => pair.join(' '))
    .join(', ')}.`,
);
