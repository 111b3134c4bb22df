import { docstring, indent, isName, literal, pascal, snake, width } from './python-text.ts';

/** A schema of an API description. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly [type: string, or: 'null'];
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly not?: object;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
}

/** The first line of each file. */
export const header = '# Written by `node scripts/python-client.ts` from the API description; change that, not this file.';

/** The classes and aliases of a description, named after where they occur first. */
export class Types {
  readonly aliases = new Map<string, string[]>();
  readonly classes = new Map<string, string[]>();
  private readonly names = new Map<string, string>();
  private readonly enums = new Map<string, string>();

  constructor(schemas: Readonly<Record<string, Schema>>) {
    for (const [name, schema] of Object.entries(schemas)) if (schema.properties) this.names.set(structure(schema), name);
    for (const [name, schema] of Object.entries(schemas)) {
      if (schema.properties) this.addClass(name, schema);
      else this.aliases.set(name, [`${name} = ${this.of(schema, name)}`]);
    }
  }

  /** The Python type of a schema; `hint` names a class or an alias that it needs. */
  of(schema: Schema, hint: string): string {
    if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1)!;
    if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((option) => this.of(option, hint)))].join(' | ');
    if (Array.isArray(schema.type)) return `${this.of(withoutNull(schema), hint)} | None`;
    if (schema.enum !== undefined) return this.literal(schema.enum as readonly string[], hint);
    if (schema.type === 'array') return `list[${this.of(schema.items ?? {}, hint)}]`;
    if (schema.type !== 'object')
      return (
        { string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None' }[(schema.type as string | undefined) ?? ''] ??
        'Any'
      );
    if (schema.properties !== undefined && Object.keys(schema.properties).length > 0) return this.class(hint, schema);
    const { additionalProperties: values } = schema;
    return `dict[str, ${this.of(typeof values === 'object' ? values : {}, hint)}]`;
  }

  private literal(values: readonly string[], hint: string): string {
    const key = values.join();
    const known = this.enums.get(key);
    if (known !== undefined) return known;
    const short = `Literal[${values.map(literal).join(', ')}]`;
    if (values.length < 3) return short;
    // A short name if it is free: `Priority`, not `PacketMetadataPriority`.
    const last = hint.match(/[A-Z][a-z0-9]*$/)![0];
    const name = this.isTaken(last) ? hint : last;
    this.enums.set(key, name);
    this.aliases.set(
      name,
      short.length + name.length < width ? [`${name} = ${short}`] : [`${name} = Literal[`, ...values.map((v) => `    ${literal(v)},`), ']'],
    );
    return name;
  }

  private class(hint: string, schema: Schema): string {
    const key = structure(schema);
    const known = this.names.get(key);
    if (known !== undefined) return known;
    let name = hint;
    for (let number = 2; this.isTaken(name); number += 1) name = hint + number;
    this.names.set(key, name);
    this.addClass(name, schema);
    return name;
  }

  private isTaken(name: string): boolean {
    return this.classes.has(name) || this.aliases.has(name) || [...this.names.values()].includes(name);
  }

  private addClass(name: string, { properties = {}, required = [], description }: Schema): void {
    const lines: string[] = [];
    this.classes.set(name, lines);
    if (!Object.keys(properties).every(isName)) {
      const member = ([key, property]: [string, Schema]) => {
        const type = this.of(property, name + pascal(key));
        const written = required.includes(key) ? type : `NotRequired[${type}]`;
        return `    ${literal(key)}: ${written.includes('"') ? `'${written}'` : literal(written)},`;
      };
      lines.push('', ...Object.entries(properties).map(member));
      return;
    }
    if (description !== undefined) lines.push(...docstring(description, width - 4), '');
    for (const [key, property] of Object.entries(properties)) {
      if (property.not !== undefined) continue;
      const type = this.of(property, name + pascal(key));
      lines.push(`${key}: ${required.includes(key) ? type : `NotRequired[${type}]`}`);
      if (property.description !== undefined) lines.push(...docstring(property.description, width - 4));
    }
  }
}

/** A schema without the null that it allows. */
function withoutNull({ type, enum: values, ...schema }: Schema): Schema {
  return { ...schema, type: type![0]!, ...(values === undefined ? {} : { enum: values.filter((value) => value !== null) }) };
}

/** What makes two objects the same type. */
function structure(schema: Schema): string {
  return JSON.stringify(schema, (name, value: unknown) =>
    name === 'examples' ||
    (/^(description|example|default|(min|max)[A-Z]\w*|minimum|maximum|pattern|format|additionalProperties)$/.test(name) &&
      typeof value !== 'object')
      ? undefined
      : value,
  );
}

/** The module of types that operations of several tags use. */
const common = 'common';

/**
 * The modules of the types: one for each tag with the types that only its operations use, `common` with all others, and the package,
 * which has all of them. `byTag` has the types that the operations of each tag name. Types of `common` use no others, so no modules import one another.
 */
export function typeModules(service: string, folder: string, types: Types, byTag: ReadonlyMap<string, string>): Record<string, string> {
  const known = new Map([...types.aliases, ...types.classes]);
  const usedBy = (text: string) => new Set((text.match(/\b[A-Z]\w*\b/g) ?? []).filter((name) => known.has(name)));
  // Descriptions may contain names of types.
  const uses = new Map([...known].map(([name, lines]) => [name, usedBy(lines.join('\n').replace(/"""[\s\S]*?"""/g, ''))]));
  const tagsOf = new Map<string, Set<string>>();
  const reach = (name: string, tag: string) => {
    const tags = tagsOf.get(name) ?? new Set();
    tagsOf.set(name, tags);
    if (tags.has(tag)) return;
    tags.add(tag);
    for (const used of uses.get(name)!) reach(used, tag);
  };
  for (const [tag, texts] of byTag) for (const name of usedBy(texts)) reach(name, tag);
  // Types of errors, which no operation returns.
  for (const name of known.keys()) if (!tagsOf.has(name)) reach(name, common);
  const moduleOf = (name: string) => {
    const [tag, ...others] = tagsOf.get(name)!;
    return others.length > 0 ? common : snake(tag!);
  };
  const members = new Map<string, string[]>();
  for (const name of known.keys()) members.set(moduleOf(name), [...(members.get(moduleOf(name)) ?? []), name]);
  const files = [...members].map(([module, names]) => {
    const elsewhere = [...new Set(names.flatMap((name) => [...uses.get(name)!]))].filter((name) => !names.includes(name));
    return [`${folder}/types/${module}.py`, typesText(service, types, names, elsewhere)];
  });
  const modules = [...members.keys()].sort();
  const all = [...known.keys()].sort().map((name) => `    ${literal(name)},`);
  files.push([
    `${folder}/types/__init__.py`,
    [
      header,
      `"""The bodies and answers of the ${service} service. Times are texts of ISO 8601."""`,
      '',
      ...modules.flatMap((module) => importText(`.${module}`, members.get(module)!)),
      '',
      '__all__ = [',
      ...all,
      ']',
      '',
    ].join('\n'),
  ]);
  return Object.fromEntries(files);
}

/** An import of names, on one line if they fit. */
function importText(module: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  // As isort orders them: constants first, names in capitals.
  const isConstant = (name: string) => name === name.toUpperCase();
  const sorted = names.toSorted((a, b) => Number(isConstant(b)) - Number(isConstant(a)) || (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  const line = `from ${module} import ${sorted.join(', ')}`;
  return line.length <= width ? [line] : [`from ${module} import (`, ...sorted.map((name) => `    ${name},`), ')'];
}

function typesText(service: string, types: Types, names: readonly string[], elsewhere: readonly string[]): string {
  const classes = names
    .filter((name) => types.classes.has(name))
    .flatMap((name) => {
      const lines = types.classes.get(name)!;
      return lines[0] === ''
        ? ['', '', `${name} = TypedDict(`, `    ${literal(name)},`, '    {', ...indent(lines.slice(1)), '    },', ')']
        : ['', '', `class ${name}(TypedDict):`, ...indent(lines)];
    });
  const aliases = names.flatMap((name) => types.aliases.get(name) ?? []);
  const code = [...aliases, ...classes].join('\n').replace(/"""[\s\S]*?"""/g, '');
  const typing = ['Any', 'Literal', 'TypedDict'].filter((word) => new RegExp(`\\b${word}\\b`).test(code));
  const local = [...(code.includes('NotRequired') ? ['from ..._compat import NotRequired'] : []), ...importText(`.${common}`, elsewhere)];
  return [
    header,
    `"""Bodies and answers of the ${service} service."""`,
    '',
    'from __future__ import annotations',
    '',
    `from typing import ${typing.join(', ')}`,
    ...(local.length === 0 ? [] : ['', ...local]),
    ...(aliases.length === 0 ? [] : ['', ...aliases]),
    ...classes,
    '',
  ].join('\n');
}
