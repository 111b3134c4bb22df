import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

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
  await store.write();
  void send();
  send().catch(() => undefined);
}
`;

test('The linter refuses a promise, or a value that may be one, that nobody awaits', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'lint-'));
  t.after(() => rmSync(folder, { recursive: true }));
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
  const args = ['-c', `${root}.oxlintrc.json`, '--format', 'json', 'source.ts'];
  const env = { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` };
  const { stdout, stderr } = spawnSync('oxlint', args, { cwd: folder, encoding: 'utf8', env });
  assert.equal(stderr, '');
  const found = (JSON.parse(stdout).diagnostics as { code: string; labels: [{ span: { line: number } }] }[])
    .map(({ code, labels: [{ span }] }) => `${span.line} ${code}`)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const expected = source.split('\n').flatMap((line, index) => {
    const [, rule] = / \/\/ (\S+)$/.exec(line) ?? [];
    return rule === undefined ? [] : [`${index + 1} typescript(${rule})`];
  });
  assert.equal(expected.length, 8);
  assert.deepEqual(found, expected);
});
