import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The paths of files that differ from their generated content. */
export function outdated(files: Readonly<Record<string, string>>): string[] {
  return Object.entries(files)
    .filter(([path, text]) => !existsSync(root + path) || readFileSync(root + path, 'utf8') !== text)
    .map(([path]) => path);
}

/** Writes the files. With `--check` on the command line it only compares them, and exits with code 1 if one differs. */
export function writeGenerated(files: Readonly<Record<string, string>>, command: string): void {
  const paths = outdated(files);
  if (!process.argv.includes('--check')) {
    for (const path of paths) writeFileSync(root + path, files[path]!);
    console.log(paths.length === 0 ? 'Nothing has changed.' : `Written: ${paths.join(', ')}`);
    return;
  }
  if (paths.length === 0) return;
  console.error(`Not up to date: ${paths.join(', ')}. Run ${command} and commit what it writes.`);
  process.exit(1);
}
