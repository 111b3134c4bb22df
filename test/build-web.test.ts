import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { sourcesOf } from '../scripts/build-web.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** All files of the project that a module imports, directly or through others, from the root of the project. */
function importsOf(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  if (!/\.tsx?$/.test(file)) return found;
  for (const [, path] of readFileSync(resolve(root, file), 'utf8').matchAll(/(?:from |import\(?)'(\.[^']+)'/g))
    importsOf(relative(root, resolve(root, dirname(file), path!)), found);
  return found;
}

for (const service of ['src/fallback', 'src/handoff'])
  test(`the pages of ${service} are built again after a change of any file that they import`, () => {
    const imports = [...importsOf(`${service}/web/main.tsx`)];
    assert.ok(imports.length > 50 && imports.some((file) => file.startsWith(`${service}/rules/`)));
    const sources = sourcesOf(service).map((source) => `${source}/`);
    assert.deepEqual(
      imports.filter((file) => !sources.some((source) => file.startsWith(source))),
      [],
    );
  });
