// Generates types from the committed API descriptions with openapi-typescript, and code that checks each operation's minimal
// request and each example against them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const here = new URL('.', import.meta.url);
const names = ['handoff', 'fallback'];
const generated = new URL('generated/', here);

/** A minimal value of a schema; an object has only its required fields. */
function smallest(schema, document) {
  if (schema.$ref !== undefined) return smallest(document.components.schemas[schema.$ref.split('/').at(-1)], document);
  const one = schema.anyOf?.[0] ?? schema.oneOf?.[0] ?? schema.allOf?.[0];
  if (one !== undefined) return smallest(one, document);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.type === 'array') return Array.from({ length: schema.minItems ?? 0 }, () => smallest(schema.items, document));
  if (schema.type === 'object' || schema.properties !== undefined)
    return Object.fromEntries((schema.required ?? []).map((name) => [name, smallest(schema.properties[name], document)]));
  return { string: 'x', integer: schema.minimum ?? 0, number: schema.minimum ?? 0, boolean: true }[schema.type] ?? null;
}

/** Lines of TypeScript that check an operation's minimal request and examples against the generated types. */
function linesOf({ operationId, requestBody, parameters = [], responses }, document) {
  const lines = [];
  const add = (type, value) => lines.push(`take<${type}>(${JSON.stringify(value)});`);
  const operation = `operations[${JSON.stringify(operationId)}]`;
  const json = requestBody?.content['application/json'];
  if (json !== undefined) {
    const body = `NonNullable<${operation}['requestBody']>['content']['application/json']`;
    add(body, smallest(json.schema, document));
    if (json.example !== undefined) add(body, json.example);
  }
  const query = parameters.filter((parameter) => parameter.in === 'query');
  if (query.length > 0) {
    const required = query.filter((parameter) => parameter.required);
    add(
      `NonNullable<${operation}['parameters']['query']>`,
      Object.fromEntries(required.map(({ name, schema }) => [name, smallest(schema, document)])),
    );
  }
  for (const [status, { content }] of Object.entries(responses)) {
    const example = content?.['application/json']?.example;
    if (example !== undefined) add(`${operation}['responses'][${status}]['content']['application/json']`, example);
  }
  return lines;
}

mkdirSync(generated, { recursive: true });
const files = [];
for (const name of names) {
  const source = new URL(`../../openapi/${name}.json`, here);
  const document = JSON.parse(readFileSync(source, 'utf8'));
  writeFileSync(new URL(`${name}.d.ts`, generated), astToString(await openapiTS(source, { silent: true })));
  const methods = ['get', 'post', 'put', 'patch', 'delete'];
  const operations = Object.values(document.paths).flatMap((path) => methods.flatMap((method) => path[method] ?? []));
  const lines = operations.flatMap((operation) => linesOf(operation, document));
  const text = [`import type { operations } from './${name}.d.ts';`, 'declare function take<T>(value: T): void;', ...lines];
  const file = new URL(`${name}-requests.ts`, generated);
  writeFileSync(file, `${text.join('\n')}\n`);
  files.push(fileURLToPath(file));
  console.log(`openapi-typescript on openapi/${name}.json: ${lines.length} requests and examples of ${operations.length} operations`);
}

const program = ts.createProgram(files, {
  strict: true,
  noEmit: true,
  module: ts.ModuleKind.NodeNext,
  allowImportingTsExtensions: true,
  types: [],
});
const faults = ts.getPreEmitDiagnostics(program);
for (const { file, start, messageText } of faults) {
  const line = file === undefined ? '' : file.text.slice(file.text.lastIndexOf('\n', start) + 1, file.text.indexOf('\n', start));
  console.log(`  ${line.slice(0, 160)}\n    ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
}
process.exit(faults.length > 0 ? 1 : 0);
