import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { settingsTable } from '../src/handoff/settings.ts';

const chart = fileURLToPath(new URL('../deploy/helm/', import.meta.url));
const read = (name: string) => readFileSync(join(chart, name), 'utf8');
const templates = globSync('templates/*', { cwd: chart }).map(read).join('\n');

/** The paths of all values in an object, such as `image.tag`. Objects that are empty are values. */
function pathsOf(values: object): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const inside = value !== null && typeof value === 'object' && !Array.isArray(value) ? pathsOf(value) : [];
    return inside.length === 0 ? [name] : inside.map((path) => `${name}.${path}`);
  });
}

describe('The Helm chart', () => {
  test('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    const { version: chartVersion, appVersion } = parse(read('Chart.yaml'));
    assert.deepEqual([chartVersion, appVersion], [version, version]);
  });

  test('reads every value that it documents, and no other', () => {
    const used = [...templates.matchAll(/\.Values\.([\w.]+)/g)].map(([, path]) => path!);
    assert.deepEqual([...new Set(used)].sort(), withParents(pathsOf(parse(read('values.yaml'))), used));
  });

  test('sets no environment variable that is not a setting', () => {
    const variables = new Set(Object.values(settingsTable).map((row) => ('variable' in row ? row.variable : '')));
    const named = [...`${templates}\n${read('values.yaml')}`.matchAll(/\bSERVICE_[A-Z_]+\b/g)].map(([name]) => name);
    // Named in a comment, as what Kubernetes would set.
    const unknown = named.filter((name) => !variables.has(name) && name !== 'SERVICE_HOST');
    assert.ok(named.includes('SERVICE_DATABASE_URL'));
    assert.deepEqual(unknown, []);
  });
});

/** The paths, those that are used as a whole (`resources`) instead of what is in them. */
function withParents(paths: readonly string[], used: readonly string[]): string[] {
  const whole = paths.map((path) => used.find((one) => path.startsWith(`${one}.`)) ?? path);
  return [...new Set(whole)].sort();
}
