import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What the files of a layer may import: layers, folders or files below `src/`, and packages. */
interface Layer {
  imports: readonly string[];
  packages: readonly string[];
}

/** The layers by name, from the table of allowed imports in the text of ARCHITECTURE.md. */
export function layersIn(text: string): ReadonlyMap<string, Layer> {
  const [, table = ''] = /^\| Layer \| May import \| Packages \|\n\|[- |]+\n((?:\|.*\n)+)/m.exec(text) ?? [];
  const spans = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!);
  return new Map(
    table.split('\n').flatMap((row) => {
      const [, names, imports, packages] = row.split('|');
      return spans(names).map((name): [string, Layer] => [name, { imports: spans(imports), packages: spans(packages) }]);
    }),
  );
}

/** Each import that the table does not allow, and each file that belongs to no layer, as a sentence. `files` are texts by path below `src/`. */
export function refusedImports(files: Readonly<Record<string, string>>, layers: ReadonlyMap<string, Layer>): string[] {
  // The longest name wins: `kit/http` has a row of its own, so that `kit` means the other files of the folder.
  const names = [...layers.keys()].sort((a, b) => b.length - a.length);
  const layerOf = (path: string) => names.find((name) => covers(name, path));
  return Object.entries(files).flatMap(([file, text]) => {
    const layer = layerOf(file);
    if (layer === undefined) return [`src/${file}: belongs to no layer`];
    const { imports, packages } = layers.get(layer)!;
    const isAllowed = (name: string) => {
      if (!name.startsWith('.')) return packages.some((entry) => covers(entry, name) || (entry === 'node:*' && name.startsWith('node:')));
      const path = posix.join('src', posix.dirname(file), name).replace(/^src\//, '');
      const target = layerOf(path);
      return target === layer || imports.some((entry) => (layers.has(entry) ? entry === target : covers(entry, path)));
    };
    return namesIn(text)
      .filter((name) => !isAllowed(name))
      .map((name) => `src/${file}: the layer ${layer} may not import ${name}`);
  });
}

/** Whether a file's path is `name`, with or without its ending, or below the folder `name` or `name/*`. */
const covers = (name: string, path: string) => path.replace(/\.tsx?$/, '') === name || path.startsWith(`${name.replace(/\/\*$/, '')}/`);

/** The modules that a file imports or re-exports, types included. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/^(?:(?:import|export|\}).* from |import )'([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    ([, name, called]) => name ?? called!,
  );
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const paths = globSync('**/*.{ts,tsx}', { cwd: `${root}src`, exclude: ['**/dist/**'] }).sort();
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(`${root}src/${path}`, 'utf8')]));
  const refused = refusedImports(files, layersIn(readFileSync(`${root}ARCHITECTURE.md`, 'utf8')));
  for (const sentence of refused) console.error(sentence);
  if (refused.length > 0) {
    console.error('"Allowed imports" in ARCHITECTURE.md says what each layer may import.');
    process.exitCode = 1;
  }
}
