// The programs run as TypeScript in a checkout and as JavaScript in the published package; both need Node 24.
import { existsSync } from 'node:fs';
import module from 'node:module';

/** Runs a program by its name. */
export async function run(name) {
  const [major] = process.versions.node.split('.').map(Number);
  if (major < 24) {
    console.error(
      `${name} needs Node 24 or newer; this is Node ${process.versions.node}. In a checkout, npm scripts and npx use the pinned one.`,
    );
    process.exit(1);
  }
  const built = new URL(`../dist/src/programs/${name}.js`, import.meta.url);
  const source = new URL(`../src/programs/${name}.ts`, import.meta.url);
  // Caches the compiled modules in the temporary folder, which halves the time of the next start.
  module.enableCompileCache();
  const program = await import(existsSync(source) ? source.href : built.href);
  await program.run();
}
