import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

// Writes the schemas of Kubernetes that kubeconform needs for the chart without references, since it follows none between files:
// node standalone.ts FOLDER NAME..., to FOLDER/standalone/NAME.

const [folder = '', ...names] = process.argv.slice(2);
const files = new Map<string, object>();

function fileAt(name: string): object {
  const found = files.get(name) ?? (JSON.parse(readFileSync(join(folder, name), 'utf8')) as object);
  files.set(name, found);
  return found;
}

/** The schema that a reference such as `/api/_definitions.json#/$defs/io.k8s.api.core.v1.Pod` names. */
function referred(ref: string, name: string): unknown {
  const [file = '', path = ''] = ref.split('#');
  const inFile = file === '' ? name : file.replace(/^\/api\//, '');
  const steps = path.split('/').filter((step) => step !== '');
  return inlined(
    steps.reduce<object>((found, step) => (found as Record<string, object>)[step]!, fileAt(inFile)),
    inFile,
  );
}

/** A schema of a file with the schemas that it refers to in their places. */
function inlined(schema: unknown, name: string): unknown {
  if (Array.isArray(schema)) return schema.map((one) => inlined(one, name));
  if (schema === null || typeof schema !== 'object') return schema;
  if ('$ref' in schema && typeof schema.$ref === 'string') return referred(schema.$ref, name);
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, inlined(value, name)]));
}

for (const name of names) {
  const target = join(folder, 'standalone', name);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, JSON.stringify(inlined(fileAt(name), name)));
}
