import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// Writes `dist`, which the published package runs, because Node does not strip types below node_modules.
const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
// Four checkers, the default, take three times the processor time, and longer on two cores: each checks the libraries anew.
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', `${root}tsconfig.build.json`, '--checkers', '1'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
// Files that the services read at run time.
for (const files of ['src/fallback/web/dist', 'src/handoff/web/dist', 'src/kit/http/dist'])
  if (existsSync(root + files)) cpSync(root + files, `${root}dist/${files}`, { recursive: true });

// After `dist` is complete: the package of the clients is made of it.
await import('./build-client.ts');
