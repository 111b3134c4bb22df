import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

// Writes `packages/client/dist`, the package `baton-client`: the built client with everything that it needs in one file, and
// its declarations with those of the schema library, so that it has no dependencies.
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'packages/client/dist');

/** Exits unless the versions of both packages are the same. */
function checkVersion(): void {
  const [own, client] = ['package.json', 'packages/client/package.json'].map((file) => JSON.parse(readFileSync(join(root, file), 'utf8')));
  if (own.version === client.version) return;
  console.error(`packages/client/package.json has version ${client.version}, package.json ${own.version}; they must be the same.`);
  process.exit(1);
}

/** The file that an import of a declaration file refers to. */
function declarationOf(importer: string, specifier: string): string {
  if (specifier === 'typebox') return join(root, 'node_modules/typebox/build/index.d.mts');
  return resolve(dirname(importer), specifier).replace(/(\.d)?\.(m?)[jt]s$/, '.d.$2ts');
}

/** The path to which a declaration file is copied. */
function copyPathOf(file: string): string {
  const [typebox, own] = [join(root, 'node_modules/typebox/build'), join(root, 'dist/src')];
  return file.startsWith(typebox) ? join(folder, 'types/typebox', relative(typebox, file)) : join(folder, 'types', relative(own, file));
}

/** Copies a declaration file and all that it imports. Their imports name the copies, as JavaScript files. */
function copyDeclarations(file: string, copied: Set<string>): void {
  if (copied.has(file)) return;
  copied.add(file);
  const text = readFileSync(file, 'utf8').replace(
    /(\bfrom\s+|\bimport\s*\(?\s*)(['"])([^'"]+)\2/g,
    (_, before: string, quote: string, name: string) => {
      if (!name.startsWith('.') && name !== 'typebox') throw new Error(`The declarations of the client need ${name}: ${file}`);
      const imported = declarationOf(file, name);
      copyDeclarations(imported, copied);
      const path = relative(dirname(copyPathOf(file)), copyPathOf(imported))
        .split(sep)
        .join('/');
      return `${before}${quote}${path.startsWith('.') ? '' : './'}${path.replace(/\.d\.(m?)ts$/, '.$1js')}${quote}`;
    },
  );
  mkdirSync(dirname(copyPathOf(file)), { recursive: true });
  // Without its indentation, which no compiler needs, the archive is a sixth smaller.
  writeFileSync(copyPathOf(file), text.replace(/^ +/gm, ''));
}

checkVersion();
rmSync(folder, { recursive: true, force: true });
await build({
  root: join(root, 'packages/client'),
  configFile: false,
  logLevel: 'warn',
  build: {
    lib: { entry: join(root, 'dist/src/client.js'), formats: ['es'], fileName: 'client' },
    outDir: 'dist',
    target: 'es2022',
    minify: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
});
copyDeclarations(join(root, 'dist/src/client.d.ts'), new Set());
copyFileSync(join(root, 'LICENSE'), join(root, 'packages/client/LICENSE'));
const included = { 'eventsource-parser': 'LICENSE', typebox: 'license' };
const licenses = Object.entries(included).map(
  ([name, file]) => `${name}\n\n${readFileSync(join(root, 'node_modules', name, file), 'utf8').trim()}\n`,
);
writeFileSync(join(folder, 'LICENSES.txt'), `The licenses of packages that this one includes.\n\n${licenses.join('\n')}`);
