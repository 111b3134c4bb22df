import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// Writes `dist`, which the published package runs: Node strips no types from files below node_modules.
const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', `${root}tsconfig.build.json`], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
// What the services read beside their modules.
for (const files of ['src/fallback/web/dist'])
  if (existsSync(root + files)) cpSync(root + files, `${root}dist/${files}`, { recursive: true });
