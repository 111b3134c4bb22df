import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rehearsalExample } from '../src/fallback/web/parts/rehearsal-example.ts';
import type { PacketSummary } from '../src/handoff/model/packet.ts';
import { startFallback } from './support/fallback.ts';
import { temporaryFolder } from './support/folder.ts';
import { startProgram } from './support/program.ts';
import { findProgram } from './support/programs.ts';
import { adminKey, startService } from './support/service.ts';
import { stores } from './support/stores.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (document: string) => readFileSync(join(root, document), 'utf8');
const readme = read('README.md');

/** A block of code: commands, or the output that a document shows. */
interface Block {
  readonly kind: string;
  readonly text: string;
}

/** The code blocks of the section with this title. */
function blocksOf(document: string, title: string): Block[] {
  const [, rest = ''] = read(document).split(`\n## ${title}\n`);
  const [section = ''] = rest.split('\n## ');
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({ kind, text }));
}

const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Shown output as a pattern: `...` matches anything, an id matches any id, and the rest is literal. */
function patternOf(shown: string): RegExp {
  const oneLine = shown.trim().replace(/,\n */g, ',');
  const literal = oneLine.replaceAll(uuid, '<id>').replace(/[\\^$*+?.()|[\]{}]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll('\\.\\.\\.', '.*?').replaceAll('<id>', uuid.source)}$`, 's');
}

/** A folder with a program of this name, which runs a file of the project. */
function standInFolder(t: TestContext, name: string, file: string): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, name), `#!/bin/sh\nexec '${process.execPath}' '${join(root, file)}' "$@"\n`);
  chmodSync(join(folder, name), 0o755);
  return folder;
}

const mark = '--- end of block ---';

/** The output of each command, run in order by one shell. */
async function runInShell(commands: readonly string[], path: string): Promise<string[]> {
  const script = commands.map((command) => `${command}\nprintf '\\n%s\\n' '${mark}'\n`).join('');
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', script], { env: { ...process.env, PATH: path } });
  assert.equal(stderr, '');
  return stdout.split(`${mark}\n`).slice(0, -1);
}

const path = process.env.PATH ?? '';
const programs = [
  { name: 'a stand-in for curl', pathOf: (t: TestContext) => `${standInFolder(t, 'curl', 'test/support/curl.ts')}${delimiter}${path}` },
  ...(findProgram('curl') === undefined ? [] : [{ name: 'curl', pathOf: () => path }]),
];

for (const store of stores) {
  describe(`The handoff over HTTP in docs/handoff.md, on ${store.name}`, () => {
    for (const { name, pathOf } of programs) {
      test(`every command works as pasted, with the output shown (with ${name})`, async (t) => {
        const service = await startService(t, { store });
        const address = await service.handoff.start();
        const blocks = blocksOf('docs/handoff.md', 'A handoff over HTTP');
        const commands = blocks
          .filter(({ kind }) => kind === 'sh')
          .map(({ text }) => text.replace('http://localhost:8080', address).replace('KEY=svc_...', `KEY=${adminKey}`));
        const written = await runInShell(commands, pathOf(t));

        let last = -1;
        let compared = 0;
        for (const { kind, text } of blocks) {
          if (kind === 'sh') last += 1;
          else {
            assert.match(written[last]!.trim(), patternOf(text), `The document shows for command ${last + 1}: ${text}`);
            compared += 1;
          }
        }
        assert.equal(compared, 7);
        const { status, body } = await service.call('GET', '/packets?status=completed');
        assert.equal(status, 200);
        assert.equal(body.total, 1);
      });
    }
  });
}

for (const { name, pathOf } of programs) {
  test(`The first chain in docs/fallback.md: every command works as pasted, with the output shown (with ${name})`, async (t) => {
    const service = await startFallback(t);
    const address = await service.fallback.start();
    const blocks = blocksOf('docs/fallback.md', 'A first chain');
    const commands = blocks.filter(({ kind }) => kind === 'sh').map(({ text }) => text.replace('http://localhost:8000', address));
    const written = await runInShell(commands, pathOf(t));
    const shown = blocks.filter(({ kind }) => kind === 'text');
    assert.deepEqual([commands.length, shown.length], [3, 3]);
    for (const [index, { text }] of shown.entries()) assert.match(written[index]!.trim(), patternOf(text), text);
  });
}

/** A service, and what runs commands of a document against it as `npx service-cli` would. */
async function terminal(t: TestContext) {
  const service = await startService(t);
  const address = await service.handoff.start();
  const folder = standInFolder(t, 'service-cli', 'bin/service-cli.js');
  const env = { PATH: `${folder}${delimiter}${path}`, HOME: folder, SERVICE_URL: address, KEY: adminKey };
  const run = (commands: string, flags: string) =>
    promisify(execFile)('sh', [flags, commands.replaceAll('npx service-cli', 'service-cli')], { cwd: root, env });
  return { service, run };
}

test("The README's first handoff works as pasted, with the output shown", async (t) => {
  const { service, run } = await terminal(t);
  const [commands, shown] = blocksOf('README.md', 'A first handoff');
  const refusal = 'The packet is claimed; resolver holds it.';
  assert.ok(commands!.text.includes(`# refused: ${refusal}\n`));
  const { stdout, stderr } = await run(commands!.text.replace('svc_...', adminKey), '-c');
  assert.match(stderr, new RegExp(`^service-cli: ${refusal.replaceAll('.', '\\.')}\\nservice-cli: Held by resolver since .*\\n$`));
  const history = stdout.slice(stdout.indexOf('TIME'));
  const times = /^\d{4}-\d\d-\d\dT[\d:.]+Z/gm;
  assert.match(history.replace(times, 'TIME').trim(), patternOf(shown!.text.replace(times, 'TIME')), history);
  assert.equal((await service.call('GET', '/packets?status=completed')).body.total, 1);
});

test('The commands of a terminal in docs/handoff.md work in the order shown', async (t) => {
  const { service, run } = await terminal(t);
  const [{ text } = { text: '' }] = blocksOf('docs/handoff.md', 'From a terminal');
  const lines = text.replace('respond $ID ', 'respond $ID --response Approve ').trim().split('\n');
  // The last two don't end, or need the shell that they are for.
  const { stdout } = await run(lines.slice(0, -2).join('\n'), '-ec');
  assert.match(stdout, /Refund 59\.90\?/);
  assert.match(stdout, /^Lease {2,}until .*\nToken {2,}lease_/m);
  const { body } = await service.call('GET', '/packets');
  const held = body.packets.filter(({ status }: { status: string }) => status !== 'created');
  assert.deepEqual(held.map(({ status, claimed_by, hitl }: PacketSummary) => [status, claimed_by?.agent_id, hitl?.response]).sort(), [
    ['claimed', 'oncall-db', null],
    ['completed', 'resolver', 'Approve'],
  ]);
});

describe('The README', () => {
  test('the pattern of a shown answer does not match a different one', () => {
    const pattern = patternOf('{"id":"019cb8d3-f1a2-7c05-9a2b-3c4d5e6f7a8b",...,"status":"created",\n ...}');
    assert.match('{"id":"01a1fdf1-4fe4-7775-bc43-c857cefeb1d0","version":"1.0.0","status":"created","revision":1}', pattern);
    assert.doesNotMatch('{"id":"01a1fdf1-4fe4-7775-bc43-c857cefeb1d0","version":"1.0.0","status":"claimed","revision":1}', pattern);
    assert.doesNotMatch('{"id":"7","version":"1.0.0","status":"created","revision":1}', pattern);
  });

  test('has at most 180 lines', () => {
    assert.ok(readme.split('\n').length <= 180);
  });

  test('its figures are those of bench/results.md', () => {
    const figures = [...readme.matchAll(/^\| (.+?) \| ([\d.,]+) (a second|ms) \| (.+) \|$/gm)];
    assert.equal(figures.length, 2);
    const measured = read('bench/results.md').split('\n');
    for (const [, name, figure, unit, meaning] of figures) {
      const row = measured.find((line) => line.startsWith(`| ${name} |`)) ?? assert.fail(`bench/results.md has no row ${name}`);
      const [, , perSecond, p50, , , against] = row.split('|').map((cell) => cell.trim());
      assert.equal(figure, unit === 'ms' ? p50 : perSecond, name!);
      const [, other] = / take ([\d,]+) a second/.exec(meaning!) ?? [];
      if (other !== undefined) assert.ok(against!.startsWith(`list and claim: ${other},`), against!);
    }
  });

  test('shows scenes that docs/rehearsal.md has, as does the dashboard without chains [F169]', () => {
    const [{ text } = { text: '' }] = [...readme.matchAll(/^```text\n( +(?:answer +)?scene .*?)^```$/gms)].map(([, shown = '']) => ({
      text: shown,
    }));
    assert.equal(rehearsalExample, text.trimEnd(), 'the dashboard leads with the same');
    const lines = text.trimEnd().split('\n');
    assert.ok(lines.length > 4);
    const documented = read('docs/rehearsal.md').split('\n');
    assert.deepEqual(
      lines.filter((line) => line !== '...' && !documented.includes(line)),
      [],
    );
    // A row of both answers is two scenes.
    const begin = documented.indexOf(lines[0]!);
    const scenes = documented
      .slice(begin, documented.indexOf('```', begin))
      .filter((line) => /^(same|DIFFERS) /.test(line))
      .flatMap((line) => (/^\w+ +both /.test(line) ? [line, line] : [line]));
    const agreeing = scenes.filter((line) => line.startsWith('same ')).length;
    const agree = `${agreeing} of ${scenes.length} scenes agree`;
    for (const sentence of [`In the example above ${agree};`, `\n${agree}, ${scenes.length - agreeing} differ.`])
      assert.ok(readme.includes(sentence), sentence);
  });

  test('the first start prints both addresses and the admin key as docs/handoff.md shows', async (t) => {
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SERVICE_'));
    const environment = {
      ...Object.fromEntries(inherited),
      SERVICE_HOST: '0.0.0.0',
      SERVICE_PORT: '0',
      SERVICE_LOG_LEVEL: 'error',
      SERVICE_DATABASE_URL: 'sqlite::memory:',
    };
    const command = [process.execPath, 'src/programs/start.ts', '--fallback-port', '0', '--fallback-storage', 'memory'];
    const program = startProgram(command, { t, cwd: root, env: environment, endBy: 'SIGTERM' });
    await program.printed(/fallback listening/);
    const lines = program.lines.slice(0, 3);
    const shown = blocksOf('docs/handoff.md', 'The first start').find(({ kind }) => kind === 'text')!;
    assert.match(
      lines
        .join('\n')
        .replace(/:\d+(?= and)/, ':8080')
        .replace(/:\d+$/, ':8000'),
      patternOf(shown.text),
    );
  });

  test('every npm command in it and in the first steps exists', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const texts = ['README.md', 'docs/handoff.md', 'docs/fallback.md'].map(read).join('');
    const named = [...texts.matchAll(/npm (?:run ([\w:-]+)|(start|test)\b)/g)].map(([, script, short]) => script ?? short!);
    assert.ok(named.includes('start') && named.includes('demo'));
    assert.deepEqual(
      named.filter((name) => !(name in scripts)),
      [],
    );
  });
});
