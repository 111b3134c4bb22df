import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

// Packs `baton-client` after `npm pack` has packed `baton`, into the same folder: npm hands its options on in the environment.
const { status } = spawnSync('npm', ['pack', './packages/client', '--json=false'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  // The output of the outer command may be read by a program.
  stdio: ['ignore', 2, 2],
});
process.exit(status ?? 1);
