import { globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { writeGenerated } from './generated.ts';
import { docstring, indent, literal, pascal, snake, width, wrapped } from './python-text.ts';
import { header, type Schema, Types, typeModules } from './python-types.ts';

// Writes the operations and types of `packages/python` from `openapi/*.json`: `node scripts/python-client.ts`. With --check it only compares.

type Content = Readonly<Record<string, { readonly schema: Schema }>>;
interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description?: string;
  readonly schema: Schema;
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}
/** A parameter of a method: its Python name, type and default, and where its value goes. */
interface Argument {
  readonly name: string;
  readonly type: string;
  readonly initial: string | undefined;
  readonly description: string;
  readonly from: Parameter | undefined;
}
interface Method {
  readonly operation: Operation;
  readonly verb: string;
  readonly path: string;
  readonly args: readonly Argument[];
  /** The answer's type; of a stream, None. */
  readonly answer: string | undefined;
  /** The type of an item of its pages. */
  readonly item: string | undefined;
}

const root = fileURLToPath(new URL('..', import.meta.url));
/** Operations of the description without a generated method: `events` is written by hand, `socket` is a WebSocket. */
const handwritten = new Set(['events', 'socket']);
/** Operations whose answer depends on a parameter: its name, the value, and the status of that answer or its type. */
const variants: Readonly<Record<string, readonly [name: string, value: string, answer: string]>> = {
  packetBrief: ['format', '"markdown"', 'str'],
  exportChain: ['raw', 'True', 'str'],
  createPacket: ['dry_run', 'True', '200'],
  askApproval: ['dry_run', 'True', 'Trial'],
  runTest: ['dry_run', 'True', '200'],
  importChain: ['dry_run', 'True', '200'],
};

/** The type of the answer that depends on a parameter, where its status does not tell it; undefined: it does. */
function variantType(operationId: string): string | undefined {
  const given = variants[operationId]?.[2];
  return given === undefined || /^\d+$/.test(given) ? undefined : given;
}

function argumentsOf(operation: Operation, types: Types): Argument[] {
  const { parameters = [], requestBody, operationId } = operation;
  const headers = parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => snake(name));
  const found = parameters
    // The connection sends the key. A value that may be a header or a part of the query is sent as a header.
    .filter(({ name }) => !['api_key', 'Authorization'].includes(name))
    .filter((parameter) => parameter.in !== 'query' || !headers.includes(snake(parameter.name)))
    .map((parameter): Argument => {
      const { name, description = '', schema } = parameter;
      const type = types.of(schema, pascal(operationId) + pascal(name));
      const listed = description.startsWith('Comma-separated') ? 'str | Sequence[str]' : type;
      const tag = /^If-(None-)?Match$/.test(name) ? 'int | str' : listed;
      const isPath = parameter.in === 'path';
      const plain = description.replace(/ Optional\.$/, '');
      return {
        name: snake(name),
        type: isPath ? type : `${tag} | None`,
        initial: isPath ? undefined : 'None',
        description: plain,
        from: parameter,
      };
    });
  const path = found.filter(({ from }) => from?.in === 'path');
  return [
    ...path,
    ...(requestBody ? [bodyOf(operation, requestBody, types)] : []),
    ...found.filter((argument) => !path.includes(argument)),
  ];
}

function bodyOf({ operationId }: Operation, { required, content }: NonNullable<Operation['requestBody']>, types: Types): Argument {
  const kinds = Object.values(content).map(({ schema }) => types.of(schema, `${pascal(operationId)}Request`));
  const type = [...new Set(kinds)].join(' | ');
  return {
    name: 'body',
    type: required ? type : `${type} | None`,
    initial: required ? undefined : 'None',
    description: '',
    from: undefined,
  };
}

/** The type of the answers with one of the statuses. */
function answerOf({ operationId, responses }: Operation, types: Types, isMeant: (status: string) => boolean): string | undefined {
  const found = Object.entries(responses)
    .filter(([status]) => status.startsWith('2') && isMeant(status))
    .map(([, { content = {} }]) => {
      const [[kind, { schema }] = [undefined, { schema: {} as Schema }]] = Object.entries(content);
      if (kind === 'text/event-stream') return undefined;
      if (kind === undefined) return 'None';
      // With the parameter of `variants` the answer is of the type named there; the others are the first option.
      const usual = variantType(operationId) === undefined ? schema : (schema.anyOf?.[0] ?? schema);
      return kind.startsWith('text/') ? 'str' : types.of(usual, `${pascal(operationId)}Answer`);
    });
  return found.includes(undefined) ? undefined : [...new Set(found)].join(' | ');
}

/** A type with the module `types` before the names of classes and aliases. */
const imported = (type: string): string => type.replace(/\b(?!(?:Any|None|Literal|Sequence|True|False)\b)[A-Z]\w*\b(?!")/g, 'types.$&');

function signature(name: string, args: readonly Argument[], answer: string, asynchronous: boolean): string[] {
  const [first, rest] = [args.filter(({ from }) => from?.in === 'path'), args.filter(({ from }) => from?.in !== 'path')];
  const written = ({ name: argument, type, initial }: Argument) =>
    `    ${argument}: ${imported(type)}${initial === undefined ? '' : ` = ${initial}`},`;
  return [
    `${asynchronous ? 'async ' : ''}def ${name}(`,
    '    self,',
    ...first.map(written),
    ...(rest.length === 0 ? [] : ['    *,']),
    ...rest.map(written),
    `) -> ${answer}:`,
  ];
}

const timeout: Argument = {
  name: 'timeout',
  type: 'float | None',
  initial: 'None',
  description: 'Seconds to wait for the answer, instead of those of the client.',
  from: undefined,
};

function documentation({ operation }: Method, args: readonly Argument[]): string[] {
  const described = args.filter(({ description }) => description !== '');
  const list = described.flatMap(({ name, description }) => wrapped(`${name}: ${description}`, width - 12, true));
  const text = [`${operation.summary}.`, ...(operation.description === undefined ? [] : ['', operation.description])].join('\n');
  return docstring(text, width - 8, ['', 'Args:', ...indent(list)]);
}

/** The arguments of the request that an operation sends. */
function requestOf({ verb, path, args }: Method): string[] {
  const values = (location: Parameter['in']) =>
    args.filter(({ from }) => from?.in === location).map(({ name, from }) => `${literal(from!.name)}: ${sentOf(name)},`);
  const dict = (name: string, items: readonly string[]) => (items.length === 0 ? [] : [`${name}={`, ...indent(items), '},']);
  const url = path.includes('{') ? `f"${path.replace(/\{(\w+)\}/g, (_, name: string) => `{segment(${snake(name)})}`)}"` : literal(path);
  const body = args.find(({ name }) => name === 'body');
  return [
    `${literal(verb.toUpperCase())},`,
    `${url},`,
    ...dict('query', values('query')),
    ...(body === undefined ? [] : [`body=${body.initial === undefined ? 'body' : '{} if body is None else body'},`]),
    ...dict('headers', values('header')),
    'timeout=timeout,',
  ];
}

function sentOf(name: string): string {
  if (name === 'idempotency_key') return 'idempotency_key or new_key()';
  if (name === 'agent_id') return 'agent_id or self._agent_id';
  if (name === 'a2a_version') return 'a2a_version or "1.0"';
  return /^if_(none_)?match$/.test(name) ? `entity_tag(${name})` : name;
}

function methodText(method: Method, types: Types, asynchronous: boolean): string[] {
  const { operation, answer } = method;
  const name = snake(operation.operationId);
  if (answer === undefined) {
    const request = indent(requestOf(method).slice(0, -1), 8);
    const iterator = `${asynchronous ? 'Async' : ''}Iterator[ServerSentEvent]`;
    return [
      ...signature(name, method.args, iterator, false),
      ...indent(documentation(method, method.args)),
      '    return self._stream(',
      ...request,
      '    )',
    ];
  }
  const args = [...method.args, timeout];
  const call = `${asynchronous ? 'await ' : ''}self._send(`;
  const whole = [
    ...signature(name, args, imported(answer), asynchronous),
    ...indent(documentation(method, args)),
    answer === 'None' ? `    ${call}` : `    answer: ${imported(answer)} = ${call}`,
    ...indent(requestOf(method), 8),
    '    )',
    ...(answer === 'None' ? [] : ['    return answer']),
  ];
  return [...overloads(method, args, types, asynchronous), ...whole, ...pagesText(method, asynchronous)];
}

/** The overloads of an operation whose answer depends on a parameter. */
function overloads({ operation }: Method, args: readonly Argument[], types: Types, asynchronous: boolean): string[] {
  const variant = variants[operation.operationId];
  if (variant === undefined) return [];
  const [name, value, given] = variant;
  const special = variantType(operation.operationId) ?? answerOf(operation, types, (status) => status === given)!;
  const usual = answerOf(operation, types, (status) => status !== given)!;
  const overload = (type: string, initial: string | undefined, answer: string) => {
    const changed = args.map((argument) => (argument.name === name ? { ...argument, type, initial } : argument));
    const lines = signature(snake(operation.operationId), changed, imported(answer), asynchronous);
    return ['@overload', ...lines.slice(0, -1), `${lines.at(-1)!} ...`];
  };
  const otherwise = value === 'True' ? 'Literal[False] | None' : 'Literal["json"] | None';
  return [...overload(otherwise, 'None', usual), ...overload(`Literal[${value}]`, undefined, special)];
}

/** The iterator over the items of an operation that has pages. */
function pagesText({ operation, args, item }: Method, asynchronous: boolean): string[] {
  const name = snake(operation.operationId);
  if (item === undefined) return [];
  const kept = args.filter(({ name: argument }) => !['offset', 'cursor'].includes(argument));
  const iterator = `${asynchronous ? 'Async' : ''}Iterator[${imported(item)}]`;
  return [
    '',
    ...signature(`iter_${name}`, [...kept, timeout], iterator, false),
    ...indent(docstring(`All items of all pages of \`${name}\`; \`limit\` is the size of a page.`, width - 8)),
    '    return self._pages(',
    `        self.${name},`,
    ...[...kept, timeout].map(({ name: argument }) => `        ${argument}=${argument},`),
    '    )',
  ];
}

/** The type of the items of a page: the elements of its only list. */
function itemOf({ operationId, responses }: Operation, types: Types, schemas: Description['components']['schemas']): string | undefined {
  const schema = responses['200']?.content?.['application/json']?.schema;
  const name = schema?.$ref?.split('/').at(-1);
  const page = name === undefined ? schema : schemas[name];
  if (page?.type === 'array') return types.of(page.items!, pascal(operationId));
  const lists = Object.entries(page?.properties ?? {}).filter(([, { type }]) => type === 'array');
  return lists.length === 1 ? types.of(lists[0]![1].items!, (name ?? `${pascal(operationId)}Answer`) + pascal(lists[0]![0])) : undefined;
}

/** The modules of a service's client: its types, and for each tag a class of operations, sync and async. */
function modulesOf(service: string): Record<string, string> {
  const { paths, components } = JSON.parse(readFileSync(`${root}/openapi/${service}.json`, 'utf8')) as Description;
  const types = new Types(components.schemas);
  const byTag = new Map<string, Method[]>();
  for (const [path, verbs] of Object.entries(paths))
    for (const [verb, operation] of Object.entries(verbs)) {
      if (handwritten.has(operation.operationId)) continue;
      const args = argumentsOf(operation, types);
      const declared = answerOf(operation, types, () => true);
      const special = variantType(operation.operationId);
      const answer = special !== undefined && !declared!.endsWith(special) ? `${declared} | ${special}` : declared;
      const item = args.some(({ name }) => ['offset', 'cursor'].includes(name)) ? itemOf(operation, types, components.schemas) : undefined;
      byTag.set(operation.tags[0], [...(byTag.get(operation.tags[0]) ?? []), { operation, verb, path, args, answer, item }]);
    }
  const folder = `packages/python/src/baton_client/${service}`;
  const files: Record<string, string> = {};
  for (const asynchronous of [false, true]) {
    const module = `${folder}/${asynchronous ? '_aio' : '_sync'}`;
    for (const [tag, methods] of byTag) files[`${module}/${snake(tag)}.py`] = operationsText(service, tag, methods, types, asynchronous);
    const tags = [...byTag.keys()].sort();
    const imports = tags.map((tag) => `from .${snake(tag)} import ${pascal(tag)}`).sort();
    files[`${module}/__init__.py`] = [
      header,
      ...imports,
      '',
      '',
      'class Operations(',
      ...tags.map((tag) => `    ${pascal(tag)},`),
      '):',
      `    """All operations of the ${service} service."""`,
      '',
    ].join('\n');
  }
  const named = ({ args, answer = '', item = '' }: Method) => [answer, item, ...args.map(({ type }) => type)].join(' ');
  const typesByTag = new Map([...byTag].map(([tag, methods]) => [tag, methods.map(named).join(' ')]));
  return { ...files, ...typeModules(service, folder, types, typesByTag) };
}

function operationsText(service: string, tag: string, methods: readonly Method[], types: Types, asynchronous: boolean): string {
  const text = methods.flatMap((method) => ['', ...indent(methodText(method, types, asynchronous))]);
  const code = text.join('\n').replace(/"""[\s\S]*?"""/g, '');
  const uses = (word: string) => new RegExp(`\\b${word}\\b`).test(code);
  const from = (module: string, words: readonly string[]) => {
    const used = words.filter(uses);
    return used.length === 0 ? [] : [`from ${module} import ${used.join(', ')}`];
  };
  const base = asynchronous ? 'AsyncConnection' : 'Connection';
  const lines = [
    header,
    '',
    'from __future__ import annotations',
    '',
    ...from('collections.abc', ['AsyncIterator', 'Iterator', 'Sequence']),
    ...from('typing', ['Any', 'Literal', 'overload']),
    '',
    ...(uses('ServerSentEvent') ? ['from ..._sse import ServerSentEvent'] : []),
    `from ..._transport import ${[base, ...['entity_tag', 'new_key', 'segment'].filter(uses)].join(', ')}`,
    ...(uses('types') ? ['from .. import types'] : []),
    '',
    '',
    `class ${pascal(tag)}(${base}):`,
    `    """Operations of the ${service} service: ${tag}."""`,
    ...text,
    '',
  ];
  return lines.join('\n').replace(/annotations\n\n\nfrom/, 'annotations\n\nfrom');
}

const files = { ...modulesOf('handoff'), ...modulesOf('fallback') };
for (const [file, text] of Object.entries(files))
  if (text.split('\n').length > 1500) throw new Error(`${file} has over 1,500 lines, which editors and readers can't take: divide it.`);
if (!process.argv.includes('--check')) for (const file of Object.keys(files)) mkdirSync(dirname(join(root, file)), { recursive: true });
// Modules of tags that no longer exist.
const left = globSync('packages/python/src/baton_client/*/{{_aio,_sync,types}/*,types}.py', { cwd: root }).filter(
  (file) => !(file in files),
);
if (process.argv.includes('--check')) for (const file of left) Object.assign(files, { [file]: '' });
else for (const file of left) rmSync(join(root, file));
writeGenerated(files, 'node scripts/python-client.ts');
