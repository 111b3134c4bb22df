import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Packages with hundreds of small modules, which make up most of the start of a test process and of a worker thread. */
const packages = ['kysely', 'typebox'];

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Bundles each of these packages into one module, once for each state of `package-lock.json`, and returns the option of Node
 * that makes our modules import the bundles. Processes that tests spawn without the option, such as those of the services,
 * load the packages as they are.
 */
export async function bundlePackages(): Promise<string> {
  const lock = createHash('sha256')
    .update(readFileSync(`${root}package-lock.json`))
    .digest('hex')
    .slice(0, 16);
  const folder = `${root}node_modules/.cache/bundles-${lock}`;
  if (!existsSync(folder)) {
    const { build } = await import('vite');
    const unfinished = `${folder}.${process.pid}`;
    await build({
      root,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: true,
        outDir: unfinished,
        minify: false,
        rolldownOptions: {
          input: Object.fromEntries(packages.map((name) => [name, name])),
          output: { entryFileNames: '[name].mjs' },
          treeshake: false,
        },
      },
    });
    try {
      renameSync(unfinished, folder);
    } catch (error) {
      // Another run has finished them first.
      if (!existsSync(folder)) throw error;
      rmSync(unfinished, { recursive: true });
    }
  }
  const query = new URLSearchParams({ folder, packages: packages.join() });
  return `--import=${new URL(`import-bundles.mjs?${query}`, import.meta.url)}`;
}
