// Synchronizes node_modules with package-lock.json. It runs before `npm start` and `npm test` on any Node from version 20,
// so it is plain JavaScript; everything after it runs on the pinned Node.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { buildWeb } from './build-web.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = `${root}node_modules/.baton-setup`;

const [major] = process.versions.node.split('.').map(Number);
if (major < 20) {
  console.error(`Baton needs Node 20 or newer to set itself up; this is Node ${process.versions.node}.`);
  process.exit(1);
}

// npm 9.6.4 leaves out every package that names a libc, such as the native part of vite.
const npm = /\bnpm\/(\d+)[\d.]*/.exec(process.env.npm_config_user_agent ?? '');
if (npm !== null && Number(npm[1]) < 10) {
  console.error(
    `Baton needs npm 10 or newer to set itself up; this is ${npm[0].replace('/', ' ')}. It comes with Node 20.9, or by npm install --global npm@10.`,
  );
  process.exit(1);
}

const wanted = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .digest('hex');
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  console.error('Installing the packages of package-lock.json (once) ...');
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    console.error('npm ci failed; its message above says why.');
    process.exit(status ?? 1);
  }
  writeFileSync(stamp, wanted);
}

// An installation has already built it; a change of its sources has not.
buildWeb();
