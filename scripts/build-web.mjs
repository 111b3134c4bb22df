// Builds the pages of each service into its folder `web/dist`, if their sources have changed since the last build, and copies
// the files of the API explorers to `src/kit/http/dist`. It runs after installation (`prepare`) and before npm scripts, on any Node from version 20.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync } from 'node:zlib';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The applications: the folder of the service, and the name in messages. */
const applications = [
  { service: 'src/fallback', name: 'dashboard' },
  { service: 'src/handoff', name: 'console' },
];

/** The files and folders whose changes cause a build. */
export const sourcesOf = (service) => [
  'package-lock.json',
  ...['web', 'model', 'rules', 'client'].map((name) => `${service}/${name}`),
  'src/kit',
];

/** All files below a folder. `readdirSync` does not know `recursive` and `parentPath` in all versions of Node 20. */
const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path) : [path];
  });

/** A digest of the inputs of a build. */
function digest(service) {
  const web = join(root, service, 'web');
  const hash = createHash('sha256');
  const add = (path) => {
    if (!existsSync(path)) return;
    hash.update(path.slice(root.length)).update(readFileSync(path));
  };
  for (const source of sourcesOf(service)) {
    const path = join(root, source);
    if (!existsSync(path)) continue;
    if (/\.\w+$/.test(source)) add(path);
    else
      for (const file of filesIn(path).sort())
        if (!file.startsWith(join(web, 'dist')) && !file.startsWith(join(root, 'src/kit/http/dist'))) add(file);
  }
  return hash.digest('hex');
}

/** The files that `/docs` and `/redoc` need, by package, with its licence. `src/kit/http/explorers.ts` serves them. */
const explorers = {
  'swagger-ui-dist': ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'LICENSE', 'NOTICE'],
  redoc: ['bundles/redoc.standalone.js', 'bundles/redoc.standalone.js.LICENSE.txt', 'LICENSE'],
};

/** Builds what is necessary. Without development packages existing files are kept. */
export function buildWeb() {
  for (const application of applications) build(application);
  copyExplorers();
}

function copyExplorers() {
  const dist = join(root, 'src/kit/http/dist');
  for (const [name, files] of Object.entries(explorers)) {
    const from = join(root, 'node_modules', name);
    if (!existsSync(from)) continue;
    const { version } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
    const stamp = join(dist, name, '.version');
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === version) continue;
    for (const file of files) {
      mkdirSync(dirname(join(dist, name, file)), { recursive: true });
      copyFileSync(join(from, file), join(dist, name, file));
    }
    writeFileSync(stamp, version);
  }
}

function build({ service, name }) {
  const web = join(root, service, 'web');
  const stamp = join(web, 'dist/.sources');
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  if (!existsSync(web) || !existsSync(vite)) return;
  const wanted = digest(service);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.error(`Building the ${name} ...`);
  const node = join(root, 'node_modules/node/bin', process.platform === 'win32' ? 'node.exe' : 'node');
  const { status, stdout, stderr } = spawnSync(
    existsSync(node) ? node : process.execPath,
    [vite, 'build', '--logLevel', 'warn', '--config', join(web, 'vite.config.ts')],
    { cwd: root, encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } },
  );
  if (status !== 0) {
    console.error(`${stdout}${stderr}The ${name} could not be built.`);
    process.exit(status ?? 1);
  }
  compress(join(web, 'dist'));
  writeFileSync(stamp, wanted);
}

/** Compresses all text files with Brotli, into files beside them. */
function compress(folder) {
  for (const file of filesIn(folder))
    if (/\.(html|js|css|svg)$/.test(file)) writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) buildWeb();
