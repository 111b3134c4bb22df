import { readFileSync } from 'node:fs';

// The schemas that the targets of exports publish.

type Schema = Record<string, unknown>;

const published = (name: string): unknown => JSON.parse(readFileSync(new URL(`published/${name}.json`, import.meta.url), 'utf8'));

/** The published schema of the parts of Bifrost's `config.json` that exports use. */
export const bifrostSchema = published('bifrost') as Schema;

/**
 * The published schemas of the objects of an Envoy AI Gateway export, by group, version and kind. As `kubectl` does, they
 * refuse unknown fields.
 */
export const envoySchemas = strict(published('envoy-ai-gateway')) as Readonly<Record<string, Schema>>;

/** A schema in which each object refuses fields that it does not name, unless it says otherwise. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, strict(member)]);
  const schema = Object.fromEntries(members) as Schema;
  const { properties, additionalProperties } = schema;
  // Objects of Kubernetes itself, such as `metadata`, have no properties here.
  if (schema.type !== 'object' || properties === undefined || additionalProperties !== undefined) return schema;
  return { ...schema, additionalProperties: false };
}
