import type { Fault } from '../../kit/errors.ts';
import { isObject } from '../../kit/json.ts';
import { keywords, overCharacters, overProperties, refused } from './keywords.ts';
import { stepsPerProperty, type Work } from './meter.ts';

/** The largest schema: bytes of its JSON, schemas within one another, and keywords. */
export const maxSchemaBytes = 32 * 1024;
const maxSchemaDepth = 12;
const maxKeywords = 500;

/** The only dialect, which a schema may name. */
const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** How many entries of keywords take as long as a subschema that a value does not satisfy, for which an error is made. */
const stepsPerSchema = 20;

/** The keyword that each subschema of a prepared schema has: its `Work`. */
export const stepKeyword = '$steps';

type Schema = Record<string, unknown>;

/** What a reference names: the JSON Pointer of a subschema, or its anchor. */
type Target = { readonly pointer: string } | { readonly anchor: string };

/** An object or boolean at a location of the schema. */
interface Node {
  readonly pointer: string;
  /** The nodes that apply to the same value. */
  readonly here: string[];
  ref?: { readonly target: Target; readonly field: string; readonly copy: Schema };
}

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/**
 * A copy of a schema that is ready to be compiled: its subschemas count their steps. `faults` lists what this service does not accept
 * in it, by the path from `field`.
 */
export function inspect(schema: unknown, field: string): Inspected {
  if (!isObject(schema))
    return { prepared: {}, subschemas: [], refersToRoot: false, faults: [{ field, detail: `${field} must be an object.` }] };
  const walk = new Walk(field);
  const { $id: _, $schema, ...rest } = schema;
  if ($schema !== undefined && String($schema).replace(/#$/, '') !== dialect) walk.fault(`${field}.$schema`, `must be ${dialect}`);
  const prepared = walk.visit(rest, { pointer: '', path: field, depth: 1 }) as Schema;
  walk.requireJudgeable();
  if (walk.keywords > maxKeywords) walk.fault(field, `has ${walk.keywords} keywords; at most ${maxKeywords} are allowed`);
  else walk.requireTargets();
  return { prepared, subschemas: walk.subschemas, refersToRoot: walk.refersToRoot, faults: walk.faults };
}

/** What is known of a schema before it is compiled. */
interface Inspected {
  readonly prepared: Schema;
  /** Its subschemas, itself included, with their paths. */
  readonly subschemas: readonly (readonly [string, Schema])[];
  /** Whether a reference names the whole schema. */
  readonly refersToRoot: boolean;
  readonly faults: readonly Fault[];
}

interface Location {
  readonly pointer: string;
  readonly path: string;
  readonly depth: number;
}

/** The work of a subschema while it is counted. */
type Counted = { -readonly [Name in keyof Work]: Work[Name] };

/** A visit of all subschemas of a schema. */
class Walk {
  readonly faults: Fault[] = [];
  readonly subschemas: (readonly [string, Schema])[] = [];
  keywords = 0;
  readonly #field: string;
  readonly #nodes = new Map<string, Node>();
  /** How many properties the schema names: `unevaluatedProperties` compares each property of a value with all of them. */
  #properties = 0;
  readonly #unevaluated: Counted[] = [];
  readonly #anchors = new Map<string, string>();
  #hasContains = false;
  /** The first place of `unevaluatedItems`. */
  #unevaluatedItems: string | undefined;
  /** Whether a reference names the whole schema. */
  refersToRoot = false;

  constructor(field: string) {
    this.#field = field;
  }

  fault(field: string, rest: string): void {
    this.faults.push({ field, detail: `${field} ${rest}.` });
  }

  /** A copy of the schema at a location, with its steps. */
  visit(schema: unknown, { pointer, path, depth }: Location): unknown {
    const node: Node = { pointer, here: [] };
    this.#nodes.set(pointer, node);
    // A schema without keywords counts as one of them. The meta-schema refuses what is neither an object nor a boolean.
    if (!isObject(schema) || Object.keys(schema).length === 0) this.keywords += 1;
    if (!isObject(schema)) return schema;
    if (depth > maxSchemaDepth) {
      if (depth === maxSchemaDepth + 1) this.fault(path, `is deeper than ${maxSchemaDepth} schemas within one another`);
      return {};
    }
    this.subschemas.push([path, schema]);
    const work = { entries: stepsPerSchema, perProperty: 0, scans: 0, lengths: 0 };
    const copy = ownObject([[stepKeyword, work]]);
    for (const [name, value] of Object.entries(schema)) {
      this.keywords += 1;
      const keyword = keywords.get(name);
      if (keyword === undefined) {
        this.fault(`${path}.${name}`, Object.hasOwn(refused, name) ? refused[name]! : 'is no keyword of JSON Schema 2020-12');
        continue;
      }
      this.#count(name, value, work);
      if (name === 'contains') this.#hasContains = true;
      if (name === 'unevaluatedItems') this.#unevaluatedItems ??= `${path}.${name}`;
      if (name === '$anchor') {
        this.#anchor(value, pointer, path);
        continue;
      }
      if (name === '$ref') {
        const ref = targetOf(value);
        if ('refusal' in ref) this.fault(`${path}.$ref`, ref.refusal);
        else node.ref = { target: ref, field: `${path}.$ref`, copy };
      }
      const inner = (key: string, below: unknown, at = key) => {
        const location = { pointer: `${pointer}/${at}`, path: `${path}.${key.replaceAll('/', '.')}`, depth: depth + 1 };
        if (keyword.applies === 'here') node.here.push(location.pointer);
        return this.visit(below, location);
      };
      setOwn(copy, name, copyOf(keyword.holds, name, value, inner));
    }
    return copy;
  }

  /** Counts the work of a keyword. */
  #count(name: string, value: unknown, work: Counted): void {
    work.entries += entriesOf(value);
    if (overProperties.has(name)) {
      work.perProperty += stepsPerProperty;
      work.scans += 1;
    }
    if (overCharacters.has(name)) work.lengths += 1;
    if (name === 'properties' && isObject(value)) this.#properties += Object.keys(value).length;
    if (name === 'unevaluatedProperties') this.#unevaluated.push(work);
    // A list within a keyword is as much work as so many keywords.
    if (name === 'dependentRequired' && isObject(value))
      for (const names of Object.values(value)) if (Array.isArray(names)) this.keywords += names.length;
  }

  /** Refuses keywords that Ajv 8 judges wrongly together: it takes all items as evaluated by `contains`, or none. */
  requireJudgeable(): void {
    if (this.#hasContains && this.#unevaluatedItems !== undefined)
      this.fault(this.#unevaluatedItems, 'is not supported in a schema that has contains');
  }

  #anchor(name: unknown, pointer: string, path: string): void {
    // The meta-schema refuses what is no name.
    if (typeof name !== 'string') return;
    if (this.#anchors.has(name)) this.fault(`${path}.$anchor`, `is the name of another subschema too: ${JSON.stringify(name)}`);
    this.#anchors.set(name, pointer);
  }

  /** Makes each reference one by a JSON Pointer, and refuses those to nothing. */
  #resolve(): void {
    for (const { ref, here } of this.#nodes.values()) {
      if (ref === undefined) continue;
      const pointer = 'pointer' in ref.target ? ref.target.pointer : this.#anchors.get(ref.target.anchor);
      if (pointer === undefined || !this.#nodes.has(pointer)) {
        const name = 'pointer' in ref.target ? ref.target.pointer : ref.target.anchor;
        this.fault(ref.field, `names no subschema: ${JSON.stringify(name)}`);
        continue;
      }
      if (pointer === '') this.refersToRoot = true;
      here.push(pointer);
      ref.copy.$ref = `#${pointer.split('/').map(encodeURIComponent).join('/')}`;
    }
  }

  /** Refuses references to nothing, and cycles of schemas that apply to the same value. */
  requireTargets(): void {
    this.#resolve();
    const done = new Set<string>();
    const open = new Set<string>();
    const isCyclic = (pointer: string): boolean => {
      if (open.has(pointer)) return true;
      if (done.has(pointer)) return false;
      open.add(pointer);
      const cyclic = this.#nodes.get(pointer)?.here.some(isCyclic) ?? false;
      open.delete(pointer);
      done.add(pointer);
      return cyclic;
    };
    const start = [...this.#nodes.keys()].find(isCyclic);
    if (start !== undefined) this.fault(this.#field, `has a cycle of references that never reaches a part of the value, at #${start}`);
    for (const work of this.#unevaluated) work.perProperty += this.#properties;
  }
}

/** What a reference names, or why it names nothing of this document. */
function targetOf(ref: unknown): Target | { readonly refusal: string } {
  if (typeof ref !== 'string' || !ref.startsWith('#'))
    return { refusal: 'must name a place of this document, such as #/$defs/name: nothing is fetched' };
  try {
    const target = decodeURIComponent(ref.slice(1));
    if (!target.isWellFormed()) return { refusal: 'has half a character' };
    return target === '' || target.startsWith('/') ? { pointer: target } : { anchor: target };
  } catch {
    return { refusal: 'is not percent-encoded correctly' };
  }
}

/** How many entries a keyword has beside its subschemas: names, values of an enumeration, members of a map. */
function entriesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return 1 + Object.keys(value).length;
}

type Inner = (key: string, below: unknown, at?: string) => unknown;

function copyOf(holds: 'value' | 'schema' | 'list' | 'map', name: string, value: unknown, inner: Inner): unknown {
  if (holds === 'schema') return inner(name, value);
  if (holds === 'list' && Array.isArray(value)) return value.map((item, index) => inner(`${name}/${index}`, item));
  if (holds === 'map' && isObject(value))
    return ownObject(Object.entries(value).map(([key, item]) => [key, inner(`${name}/${key}`, item, `${name}/${escaped(key)}`)]));
  return value;
}

/** Sets an own property, whatever its name. */
function setOwn(object: Schema, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
}

/** An object with these own properties, whatever their names. */
function ownObject(entries: readonly (readonly [string, unknown])[]): Schema {
  return Object.fromEntries(entries);
}
