// Pages in Markdown of an OpenAPI description: one for each tag, and one with the named schemas.

const methods = ['get', 'post', 'put', 'patch', 'delete'];

/** The anchor that VitePress gives to a heading of one word. */
const anchor = (text) => text.toLowerCase().replace(/[^a-z0-9_]+/g, '-');
export const slug = (tag) => anchor(tag);

/** A text in one cell of a table. */
const cell = (text = '') => escaped(text).replace(/\n+/g, ' ').replaceAll('|', '\\|');

/** A text of the description, in which only code spans are markup: a page is compiled as a template. */
const escaped = (text) =>
  text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')))
    .join('');

/** The named schema that a reference leads to. */
const nameOf = ({ $ref }) => $ref?.split('/').at(-1);

/** The type of a schema: a link to a named schema, or words. */
function typeOf(schema) {
  const name = nameOf(schema);
  if (name !== undefined) return `[${name}](./schemas.md#${anchor(name)})`;
  const parts = schema.anyOf ?? schema.oneOf;
  if (parts !== undefined) return [...new Set(parts.map(typeOf))].join(' or ');
  if (schema.allOf?.length === 1) return typeOf(schema.allOf[0]);
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.type === undefined) return 'any value';
  const format = schema.format === undefined ? '' : ` (${schema.format})`;
  return [schema.type].flat().join(' or ') + format;
}

const bounds = {
  minimum: 'at least',
  maximum: 'at most',
  minLength: 'characters: at least',
  maxLength: 'characters: at most',
  minItems: 'items: at least',
  maxItems: 'items: at most',
};

/** The description of a field with its default and its bounds. */
function meaning({ description = '', default: fallback, ...schema }) {
  const limits = Object.entries(bounds).flatMap(([name, words]) => (schema[name] === undefined ? [] : [`${words} ${schema[name]}`]));
  const notes = [
    ...(limits.length === 0 ? [] : [`${limits.join(', ')}.`]),
    ...(fallback === undefined ? [] : [`Default: \`${JSON.stringify(fallback)}\`.`]),
  ];
  return cell([description, ...notes].filter(Boolean).join(' '));
}

/** The rows of the fields of an object: those of unnamed objects inside it have their path. */
function fieldRows(schema, path = '') {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = field.type === 'array' ? (field.items ?? {}) : (field.anyOf?.find(({ properties }) => properties !== undefined) ?? field);
    const fieldPath = path + name;
    const needed = (schema.required ?? []).includes(name) ? 'yes' : '';
    const own = `| \`${fieldPath}\` | ${cell(typeOf(field))} | ${needed} | ${meaning(field)} |`;
    return [own, ...(inner.properties === undefined ? [] : fieldRows(inner, `${fieldPath}${field.type === 'array' ? '[]' : ''}.`))];
  });
}

function table(head, rows) {
  if (rows.length === 0) return '';
  return `| ${head.join(' | ')} |\n|${' --- |'.repeat(head.length)}\n${rows.join('\n')}\n`;
}

/** A schema as a table of fields, or as words. */
function shape(schema) {
  const rows = fieldRows(schema);
  return rows.length === 0 ? `${typeOf(schema)}\n` : table(['Field', 'Type', 'Required', 'Meaning'], rows);
}

const exampleOf = ({ example, examples }) => example ?? Object.values(examples ?? {})[0]?.value;

function example(value, kind) {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return `\n\`\`\`${kind.includes('json') ? 'json' : 'text'}\n${text}\n\`\`\`\n`;
}

function operation(method, path, { summary, operationId, description = '', parameters = [], requestBody, responses }, resolve) {
  const given = parameters.map(resolve).map(({ name, in: where, required, schema, description: words }) => {
    const type = cell(typeOf(schema));
    return `| \`${name}\` | ${where} | ${type} | ${required ? 'yes' : ''} | ${meaning({ ...schema, description: words ?? schema.description })} |`;
  });
  const bodies = Object.entries(resolve(requestBody ?? {}).content ?? {});
  const answers = Object.entries(responses).map(([status, response]) => [status, resolve(response)]);
  const shapes = answers.map(([status, { description: words, content = {} }]) => {
    const types = Object.values(content).map(({ schema }) => (schema === undefined ? '' : typeOf(schema)));
    return `| ${status} | ${cell(words)} | ${cell([...new Set(types)].join(' or '))} |`;
  });
  const [, good] = answers.find(([status]) => status.startsWith('2')) ?? [];
  const [kind, shown] = Object.entries(good?.content ?? {})[0] ?? [];
  return [
    `## ${summary} {#${operationId.toLowerCase()}}\n`,
    `\`\`\`http\n${method.toUpperCase()} ${path}\n\`\`\`\n`,
    `Operation: \`${operationId}\`\n`,
    `${escaped(description)}\n`,
    given.length === 0 ? '' : `**Parameters**\n\n${table(['Name', 'In', 'Type', 'Required', 'Meaning'], given)}`,
    ...bodies.map(([type, body]) => `**Body** (\`${type}\`)\n\n${shape(body.schema ?? {})}${example(exampleOf(body), type)}`),
    `**Answers**\n\n${table(['Status', 'When', 'Body'], shapes)}`,
    shown === undefined ? '' : example(exampleOf(shown), kind),
  ].join('\n');
}

/** The pages of a description by name: `index`, one for each tag, and `schemas`. */
export function referencePages(description) {
  const resolve = (value) =>
    value.$ref === undefined
      ? value
      : value.$ref
          .slice(2)
          .split('/')
          .reduce((at, name) => at[name], description);
  const operations = Object.entries(description.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method] !== undefined).map((method) => ({ method, path, ...item[method] })),
  );
  const tags = description.tags.map(({ name, description: words = '' }) => ({
    name,
    words,
    operations: operations.filter((one) => one.tags[0] === name),
  }));
  const pages = {};
  const { title, description: about } = description.info;
  pages.index = [
    `# ${title}: API reference {#about}\n\n${escaped(about)}\n`,
    ...tags.map(({ name, operations: own }) => {
      const rows = own.map(
        ({ method, path, summary, operationId }) =>
          `| [${summary}](./${slug(name)}.md#${operationId.toLowerCase()}) | \`${method.toUpperCase()} ${path}\` |`,
      );
      return `## ${name}\n\n${table(['Operation', 'Path'], rows)}`;
    }),
  ].join('\n');
  for (const { name, words, operations: own } of tags)
    pages[slug(name)] =
      `# ${name} {#about}\n\n${escaped(words)}\n\n${own.map(({ method, path, ...one }) => operation(method, path, one, resolve)).join('\n')}`;
  const schemas = Object.entries(description.components.schemas);
  pages.schemas = `# Schemas {#about}\n\n${schemas
    .map(([name, schema]) => `## ${name} {#${anchor(name)}}\n\n${escaped(schema.description ?? '')}\n\n${shape(schema)}`)
    .join('\n')}`;
  return { pages, tags: tags.map(({ name }) => name) };
}
