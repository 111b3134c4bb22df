import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Writes `dist`, which the published package runs, because Node does not strip types below node_modules.
const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
// Four checkers, the default, take three times the processor time, and longer on two cores: each checks the libraries anew.
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', `${root}tsconfig.build.json`, '--checkers', '1'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

/** A declaration file and all that it imports. */
function declarations(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file) || !existsSync(file)) return found;
  found.add(file);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/\b(?:from|import)\s*\(?['"](\.[^'"]+)['"]/g))
    declarations(join(dirname(file), name!).replace(/\.[jt]s$/, '.d.ts'), found);
  return found;
}

// Nobody reads the other declarations: they were nine tenths of 24 MB.
const needed = ['client', 'server'].reduce((found, name) => declarations(`${root}dist/src/${name}.d.ts`, found), new Set<string>());
for (const file of globSync(`${root}dist/**/*.d.ts`)) if (!needed.has(file)) rmSync(file);

// Files that the services read at run time.
for (const files of ['src/fallback/web/dist', 'src/handoff/web/dist', 'src/kit/http/dist'])
  if (existsSync(root + files)) cpSync(root + files, `${root}dist/${files}`, { recursive: true });

// After `dist` is complete: the package of the clients is made of it.
await import('./build-client.ts');
