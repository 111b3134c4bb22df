import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { startCluster } from './cluster.ts';

/**
 * Starts a Citus cluster on this machine and runs tests on it: `node tools/citus/run.ts`, or with `FILE ...` some of them. It needs
 * Debian's postgresql-15 with Citus installed, and runs it as the user `postgres` where it is started by root. Not in CI, where
 * there is no Citus.
 */
const root = fileURLToPath(new URL('../../', import.meta.url));

/** The files that do not run on a cluster: their tables are not those of tenants, so it can't distribute them. */
const ofOneServer = ['test/handoff/store/session.test.ts'];

/** The contract suites, each test of which must pass, and what only a cluster has. */
const contracts = globSync(['test/handoff/http/**/*.test.ts', 'test/handoff/store/**/*.test.ts', 'test/handoff/instances.test.ts'], {
  cwd: root,
})
  .filter((file) => !ofOneServer.includes(file))
  .sort();
const own = globSync('tools/citus/*.test.ts', { cwd: root }).sort();

async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<boolean> {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const [code] = await once(child, 'exit');
  return code === 0;
}

const given = process.argv.slice(2);
const files = given.length > 0 ? given : [...own, ...contracts];
const ofTools = files.filter((file) => file.startsWith('tools/'));
const ofContracts = files.filter((file) => !ofTools.includes(file));

const cluster = await startCluster();
const env = { BATON_TEST_CITUS: cluster.servers.map(({ address }) => address).join(',') };
let passed = true;
try {
  if (ofTools.length > 0) passed = await run(['--test', '--test-concurrency=1', ...ofTools], env);
  if (ofContracts.length > 0) passed = (await run(['scripts/test.ts', ...ofContracts], env)) && passed;
} finally {
  await cluster.stop();
}
process.exit(passed ? 0 : 1);
