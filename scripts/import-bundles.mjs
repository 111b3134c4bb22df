// Preloaded by the processes of tests: imports of bundled packages from our modules get the bundles (see bundles.ts).
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const { searchParams } = new URL(import.meta.url);
const root = new URL('..', import.meta.url).href;
const bundles = new Map(
  searchParams
    .get('packages')
    .split(',')
    .map((name) => [name, pathToFileURL(`${searchParams.get('folder')}/${name}.mjs`).href]),
);

registerHooks({
  resolve(specifier, context, next) {
    const url = bundles.get(specifier);
    const isOurs = context.parentURL?.startsWith(root) && !context.parentURL.includes('/node_modules/');
    return url === undefined || !isOurs ? next(specifier, context) : { url, format: 'module', shortCircuit: true };
  },
});
