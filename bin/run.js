// The programs run as TypeScript in a checkout and as JavaScript in the published package; both need the Node of `engines`.
import { existsSync, readFileSync } from 'node:fs';
import module from 'node:module';

/** Runs a program by its name. */
export async function run(name) {
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const needed = engines.node.replace('>=', '');
  const { node } = process.versions;
  if (node.localeCompare(needed, 'en', { numeric: true }) < 0) {
    console.error(`${name} needs Node ${needed} or newer; this is Node ${node}. In a checkout, npm scripts and npx use the pinned one.`);
    process.exit(1);
  }
  const built = new URL(`../dist/src/programs/${name}.js`, import.meta.url);
  const source = new URL(`../src/programs/${name}.ts`, import.meta.url);
  // Caches the compiled modules in the temporary folder, which halves the time of the next start.
  module.enableCompileCache();
  const program = await import(existsSync(source) ? source.href : built.href);
  await program.run();
}
