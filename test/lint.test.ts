import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { layersIn, refusedImports } from '../scripts/layers.ts';
import { temporaryFolder } from './support/folder.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** One finding of the linter. */
interface Diagnostic {
  readonly code: string;
  readonly filename: string;
  readonly labels: readonly [{ readonly span: { readonly line: number } }];
}

/** What the linter finds in a folder. It looks for its type-aware part in the search path. */
function diagnosticsOf(folder: string): Diagnostic[] {
  const env = { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` };
  const args = ['-c', `${root}.oxlintrc.json`, '--format', 'json', '.'];
  const { stdout, stderr } = spawnSync('oxlint', args, { cwd: folder, encoding: 'utf8', env });
  assert.equal(stderr, '');
  return JSON.parse(stdout).diagnostics;
}

/** Each line with a mistake ends with the rule that refuses it. */
const source = `import type { Awaitable } from '${root}src/kit/awaitable.ts';
declare const store: { write(): Awaitable<void>; count(): Awaitable<number>; later?: () => Awaitable<void> };
declare function send(): Promise<void>;
export async function work<T>(each: () => Awaitable<T>): Promise<void> {
  store.write(); // no-floating-promises
  store.count(); // no-floating-promises
  store.later?.(); // no-floating-promises
  each(); // no-floating-promises
  send(); // no-floating-promises
  send().then(() => 1); // no-floating-promises
  if (send()) return; // no-misused-promises
  setTimeout(async () => send(), 1); // no-misused-promises
  void send(); // no-void
  setTimeout(() => void send(), 1); // no-void
  const { write, later } = store; // unbound-method
  await write();
  await later?.();
  await store.write();
  send().catch(() => undefined);
}
`;

test('The linter refuses a promise, or a value that may be one, that nobody awaits, and a method that is passed without its object', (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'source.ts'), source);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: `${root}tsconfig.json`,
      compilerOptions: { typeRoots: [`${root}node_modules/@types`] },
      include: ['*.ts'],
      exclude: [],
    }),
  );
  const found = diagnosticsOf(folder)
    .map(({ code, labels: [{ span }] }) => `${span.line} ${code}`)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const expected = source.split('\n').flatMap((line, index) => {
    const [, rule] = / \/\/ (\S+)$/.exec(line) ?? [];
    return rule === undefined ? [] : [`${index + 1} ${rule === 'no-void' ? 'eslint' : 'typescript'}(${rule})`];
  });
  assert.equal(expected.length, 11);
  assert.deepEqual(found, expected);
});

test('The linter refuses files that import one another', (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'one.ts'), "import { two } from './two.ts';\n\nexport const one = () => two;\n");
  writeFileSync(join(folder, 'two.ts'), "import { one } from './one.ts';\n\nexport const two = () => one;\n");
  assert.deepEqual(
    diagnosticsOf(folder)
      .map(({ code, filename }) => `${filename}: ${code}`)
      .sort(),
    ['one.ts: import(no-cycle)', 'two.ts: import(no-cycle)'],
  );
});

describe('The table of allowed imports in ARCHITECTURE.md', () => {
  const layers = layersIn(readFileSync(`${root}ARCHITECTURE.md`, 'utf8'));
  const importing = (file: string, name: string) => refusedImports({ [file]: `import { x } from '${name}';\n` }, layers);

  test('allows what it lists: a layer itself, other layers, packages and built-in modules', () => {
    const allowed: [string, string][] = [
      ['kit/http/one.ts', './two.ts'],
      ['kit/http/one.ts', '../clock.ts'],
      ['handoff/store/engine/one.ts', '../../../kit/sql/database.ts'],
      ['handoff/main.ts', './http/server.ts'],
      ['handoff/main.ts', '../kit/http/app.ts'],
      ['handoff/cli/one.ts', '../../../package.json'],
      ['handoff/mcp/one.ts', '@modelcontextprotocol/server/stdio'],
      ['programs/one.ts', 'node:fs/promises'],
    ];
    assert.deepEqual(
      allowed.flatMap(([file, name]) => importing(file, name)),
      [],
    );
  });

  test('refuses all other imports, also of types, exports and calls', () => {
    const refused: Record<string, string> = {
      'kit/one.ts': '../handoff/model/api.ts',
      'kit/http/one.ts': '../sql/database.ts',
      'kit/sql/one.ts': 'fastify',
      'handoff/model/one.ts': '../rules/packet.ts',
      'handoff/rules/one.ts': '../../kit/clock.ts',
      'handoff/store/one.ts': '../service/packets.ts',
      'handoff/store/migrations/one.ts': '../../service/packets.ts',
      'handoff/service/one.ts': 'kysely',
      'handoff/live/one.ts': '../store/store.ts',
      'handoff/jobs/one.ts': '../http/server.ts',
      'handoff/http/one.ts': '../../kit/sql/database.ts',
      'handoff/cli/one.ts': '../main.ts',
      'handoff/settings.ts': './store/store.ts',
      'handoff/main.ts': '../fallback/main.ts',
      'fallback/model/one.ts': '../rules/engine.ts',
      'fallback/rules/one.ts': '../../kit/clock.ts',
      'fallback/store/one.ts': '../service/chains.ts',
      'fallback/providers/one.ts': '../store/store.ts',
      'fallback/service/one.ts': 'kysely',
      'fallback/http/one.ts': '../providers/transport.ts',
      'fallback/cli/one.ts': '../main.ts',
      'fallback/settings.ts': './store/store.ts',
      'fallback/main.ts': '../handoff/main.ts',
    };
    for (const [file, name] of Object.entries(refused)) assert.equal(importing(file, name).length, 1, `${file} imports ${name}`);
    for (const text of [
      "import type { Store } from '../store/store.ts';",
      "export { openStore } from '../store/store.ts';",
      "import {\n  openStore,\n} from '../store/store.ts';",
      "import '../store/store.ts';",
      "type Store = typeof import('../store/store.ts');",
    ])
      assert.deepEqual(refusedImports({ 'handoff/live/one.ts': text }, layers), [
        'src/handoff/live/one.ts: the layer handoff/live may not import ../store/store.ts',
      ]);
  });

  test('has a row for every folder', () => {
    assert.deepEqual(refusedImports({ 'handoff/unknown/one.ts': '' }, layers), ['src/handoff/unknown/one.ts: belongs to no layer']);
  });
});

test('The linter refuses time, randomness, network and environment in rules', (t) => {
  const refused = [
    'export const reached = new Date();',
    'export const reached = Date.now();',
    'export const reached = Math.random();',
    'export const reached = process.pid;',
    "export const reached = fetch('/');",
    'export const reached = setTimeout(() => 0, 1);',
    "import { randomUUID } from 'node:crypto';\n\nexport const reached = randomUUID();",
  ];
  const allowed = ['export const given = new Date(0);', "import { hash } from 'node:crypto';\n\nexport const digest = hash('sha256', '');"];
  const files = Object.fromEntries([...refused, ...allowed].map((text, index) => [`src/handoff/rules/case-${index}.ts`, `${text}\n`]));
  const faulty = new Set(lint(t, files).map(({ path }) => path));
  assert.deepEqual(
    [...faulty].sort(),
    refused.map((_, index) => `src/handoff/rules/case-${index}.ts`),
  );
});

test('The linter refuses JSON.parse where the names in a text may be those of callers, which readJson reads', (t) => {
  const parse = 'export const read = (text: string): unknown => JSON.parse(text);\n';
  const refused = [
    'src/handoff/service/one.ts',
    'src/handoff/store/search/one.ts',
    'src/fallback/store/one.ts',
    'src/handoff/http/local.ts',
    'src/handoff/cli/one.ts',
    'src/handoff/web/one.ts',
    'src/kit/sql/one.ts',
  ];
  const files = Object.fromEntries([...refused, 'src/kit/json.ts'].map((path) => [path, parse]));
  assert.deepEqual(
    lint(t, files)
      .map(({ path }) => path)
      .sort(),
    refused.toSorted(),
  );
});

test('The linter refuses to read a file of a user in any encoding', (t) => {
  const refused = ["readFileSync('a', 'utf8')", "readFile('a', 'utf8')"];
  const allowed = ["readFileSync('a')", "readFileSync('a', 'latin1')"];
  const files = [...refused, ...allowed].map((call, index) => [
    `src/handoff/cli/case-${index}.ts`,
    `import { readFileSync } from 'node:fs';\nimport { readFile } from 'node:fs/promises';\n\nexport const calls = [readFileSync, readFile, () => ${call}];\n`,
  ]);
  const faulty = lint(t, Object.fromEntries(files)).map(({ path }) => path);
  assert.deepEqual(faulty.sort(), ['src/handoff/cli/case-0.ts', 'src/handoff/cli/case-1.ts']);
});

/** The errors that the project's linter finds in the given files when they are part of the project. */
function lint(t: TestContext, files: Readonly<Record<string, string>>): { path: string; message: string }[] {
  const folder = temporaryFolder(t);
  for (const path of ['biome.jsonc', '.gitignore', 'scripts/lint']) cpSync(join(root, path), join(folder, path), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [biome, 'lint', '--diagnostic-level=error', '--max-diagnostics=none', '--reporter=json', 'src'],
    { cwd: folder, encoding: 'utf8' },
  );
  assert.ok(stdout.startsWith('{'), stderr);
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { message: string; location: { path: string } }[] };
  return diagnostics.map(({ message, location }) => ({ path: location.path, message }));
}

test('The linter refuses a loop that awaits without a turn of the event loop for each pass', (t) => {
  const refused = [
    'for (const id of ids) await find(id);',
    'for (let index = 0; index < ids.length; index += 1) await find(ids[index]!);',
    'while (ids.length > 0) await find(ids.pop()!);',
  ];
  const allowed = [
    'for (const id of ids) {\n    await turns.next(1);\n    await find(id);\n  }',
    'for (const id of ids) await session.view(id);',
    'for (const id of ids) later.push(async () => await find(id));',
  ];
  const texts = [...refused, ...allowed].map((text) => `export async function read() {\n  ${text}\n}\n`);
  const files = Object.fromEntries(texts.map((text, index) => [`src/handoff/service/case-${index}.ts`, text]));
  const faulty = lint(t, files).filter(({ message }) => message.includes('turns.next'));
  assert.deepEqual(
    faulty.map(({ path }) => path).sort(),
    refused.map((_, index) => `src/handoff/service/case-${index}.ts`),
  );
});
