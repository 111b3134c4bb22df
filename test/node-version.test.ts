import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import packageJson from '../package.json' with { type: 'json' };
import packageLock from '../package-lock.json' with { type: 'json' };

const root = fileURLToPath(new URL('..', import.meta.url));
const needed = packageJson.engines.node.replace('>=', '');
const [major, minor] = needed.split('.').map(Number) as [number, number];

/** What a Node says that takes itself for another version. */
function onNode(version: string, ...args: string[]) {
  const versions = JSON.stringify({ ...process.versions, node: version });
  const pretending = `data:text/javascript,Object.defineProperty(process,'versions',{value:${encodeURIComponent(versions)}})`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', pretending, ...args], { cwd: root, encoding: 'utf8' });
  return { status, stdout, stderr };
}

test('The programs and baton/server need the Node of `engines`, and say so on an older one', () => {
  const creating = "const { createFallback } = await import('./src/server.ts'); await using service = await createFallback();";
  const ways: [string, string[]][] = [
    ['service-cli', ['bin/service-cli.js', '--help']],
    ['fallback-service', ['bin/fallback-service.js', '--help']],
    ['baton/server', ['--input-type=module', '-e', creating]],
  ];
  for (const [name, args] of ways) {
    const { status, stderr } = onNode(`${major}.${minor - 1}.9`, ...args);
    assert.equal(status, 1, name);
    assert.ok(stderr.includes(`${name} needs Node ${needed} or newer; this is Node ${major}.${minor - 1}.9.`), stderr);
    const newer = onNode(`${major}.${minor + 10}.0`, ...args);
    assert.equal(newer.status, 0, newer.stderr);
  }
});

test('The documents name the Node of `engines`', () => {
  for (const page of ['docs/handoff.md', 'docs/decisions/0001-node-as-a-package.md']) {
    const named = [...readFileSync(`${root}${page}`, 'utf8').matchAll(/\bneeds? Node ([\d.]*\d)/g)].map(([, version]) => version);
    assert.deepEqual(named, [needed], page);
  }
});

test('The set-up needs npm 10, and says so on an older one', () => {
  const env = { ...process.env, npm_config_user_agent: 'npm/9.6.4 node/v20.0.0 linux x64 workspaces/false' };
  const { status, stderr } = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, env, encoding: 'utf8' });
  assert.match(stderr, /^Baton needs npm 10 or newer to set itself up; this is npm 9\.6\.4\./);
  assert.equal(status, 1);
});

test('npm of every Node installs the optional packages that the pinned Node needs', () => {
  const entries = Object.entries(packageLock.packages as Record<string, { optional?: boolean; engines?: object }>);
  const withEngines = entries.filter(([, entry]) => entry.optional === true && entry.engines !== undefined);
  assert.deepEqual(
    withEngines.map(([name]) => name),
    [],
    'npm leaves these out on a Node that they do not name: npm run fix',
  );
});
