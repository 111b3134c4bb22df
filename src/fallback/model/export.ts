import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, defaulted, described, IdParams, object, record } from '../../kit/schemas.ts';
import { Chain, ChainDefinition, ChainRequest, chainExample, chainRequestExample, definitionExample } from './chain.ts';
import { ETag, exampleId, failing, Location, optional, shortName, Warning } from './common.ts';
import { Finding } from './finding.ts';
import { defineRoute } from './route.ts';
import { exportFormats, importFormats, rehearsalFormats } from './targets.ts';

export const templateNames = ['env', 'runbook', 'curl'] as const;
/** For chains that mix retries and failovers: what a target with a single number of retries does. */
export const preferences = ['failover', 'retry'] as const;

export type TemplateName = (typeof templateNames)[number];

/** The longest template, in characters. */
const maxTemplate = 65_536;

export const Export = described('A chain in the configuration format of another program.', {
  format: choice(exportFormats),
  filename: Type.String({ description: 'The usual name of the file.' }),
  content_type: Type.String({ description: 'The media type of `content`.' }),
  config: Type.Unknown({ description: 'The configuration as an object, or a string if the format is code.' }),
  content: Type.String({ description: 'The text to save.' }),
  lossless: Type.Boolean({
    description: 'Whether the target behaves like the chain, with whole answers, and an import gives the same chain.',
  }),
  warnings: Type.Array(Warning, { description: 'What the target cannot express.' }),
});

export const TemplateRequest = described('One of `chain_id` and `chain`, and one of `template` and `template_name`.', {
  chain_id: optional(Type.String({ maxLength: 64, description: 'The id of a stored chain; or use `chain`.' })),
  chain: Type.Optional(Type.Union([ChainRequest, Type.Null()], { description: 'A chain, which is not stored; or use `chain_id`.' })),
  template: optional(Type.String({ maxLength: maxTemplate, description: 'A Liquid template; or use `template_name`.' })),
  template_name: optional(choice(templateNames, { description: 'The name of a built-in template; or use `template`.' })),
  variables: optional(record(Type.Unknown(), { description: 'Additional values, by name.' })),
});

export const TemplateOutput = object({
  output: Type.String({ description: 'The output of the template.' }),
  content_type: Type.String({ description: 'The media type of `output`.' }),
  warnings: Type.Array(Warning),
});

export const ImportRequest = described('A configuration file of another program, to import as a chain.', {
  content: Type.Unknown({ description: 'The file, as text or as its parsed object.' }),
  name: optional(shortName('The name of the new chain.')),
});

export const Imported = object({
  chain: Chain,
  findings: Type.Array(Finding, { description: 'What was interpreted differently or left out.' }),
});

/** An import that stores nothing. */
export const ImportPreview = described('What an import would store.', {
  chain: ChainDefinition,
  findings: Type.Array(Finding, { description: 'What was interpreted differently or left out.' }),
  warnings: Type.Array(Warning, { description: 'The warnings that the chain would have.' }),
});

export type Export = Static<typeof Export>;
export type TemplateRequest = Static<typeof TemplateRequest>;
export type TemplateOutput = Static<typeof TemplateOutput>;
export type ImportRequest = Static<typeof ImportRequest>;
export type Imported = Static<typeof Imported>;
export type ImportPreview = Static<typeof ImportPreview>;

/** The routes of exports, templates and imports. */
const exportRoutes = routeTable('exports', {
  exportChain: defineRoute({
    method: 'POST',
    path: '/chains/{id}/export',
    access: 'read',
    summary: 'Export chain configuration',
    description:
      'Exports contain no keys, only the names of environment variables. `warnings` lists what the target cannot express; `raw=true` returns only the text, as a download.',
    params: IdParams,
    query: Type.Object({
      format: defaulted(choice(exportFormats, { default: 'json', description: 'The target format.' })),
      raw: defaulted(Type.Boolean({ default: false, description: 'Return only the text, as a download.' })),
      prefer: defaulted(
        choice(preferences, {
          default: 'failover',
          description: 'For targets with a single number of retries, if the chain mixes retries and failovers.',
        }),
      ),
      rehearsal: defaulted(
        Type.Boolean({
          default: false,
          description: `Lead every address to the chain's fake providers, with the literal key \`rehearsal\`. Only for the formats ${rehearsalFormats.join(', ')}.`,
        }),
      ),
      keep_state: Type.Optional(
        Type.Boolean({
          description:
            'With `rehearsal`: whether the gateway keeps the cool-downs of the chain, as outages in time need it. Default: false, so that scenes do not disturb one another.',
        }),
      ),
      rehearsal_base: Type.Optional(
        Type.String({
          maxLength: 2048,
          pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
          description:
            'With `rehearsal`: the address at which the gateway reaches this service. Default: SERVICE_PUBLIC_URL, or the address of this request.',
        }),
      ),
    }),
    responses: {
      200: {
        schema: Export,
        description: 'The configuration; with `raw=true`, the text of its `content`, in the media type of the format.',
        otherTypes: {
          'application/json': '{}',
          'application/yaml': 'model_list:\n  - model_name: production-chain\n',
          'text/javascript': "/** The chain's name. */\nexport const name = 'production-chain';\n",
        },
        example: {
          format: 'json',
          filename: 'production-chain.json',
          content_type: 'application/json',
          config: chainRequestExample,
          content: JSON.stringify(chainRequestExample, null, 2),
          lossless: true,
          warnings: [],
        },
      },
      ...failing(401, 404, 429),
    },
  }),
  exportTemplate: defineRoute({
    method: 'POST',
    path: '/export-template',
    access: 'read',
    summary: 'Export with a custom template',
    description: 'Renders a Liquid template in a sandbox: no code, no files, unknown names are errors, size and time are limited.',
    body: TemplateRequest,
    bodyExample: { chain_id: exampleId, template: '{{ chain.name }}: {{ chain.providers | map: "name" | join: ", " }}' },
    responses: {
      200: {
        schema: TemplateOutput,
        description: 'The output of the template.',
        example: { output: 'production-chain: gpt-4o, claude', content_type: 'text/plain; charset=utf-8', warnings: [] },
      },
      ...failing(401, 404, 413, 415, 429),
    },
  }),
  importChain: defineRoute({
    method: 'POST',
    path: '/import',
    access: 'write',
    summary: 'Import a chain from a file',
    description: 'The file as `content` or as the body itself. `findings` lists what was left out or interpreted differently.',
    query: Type.Object({
      format: defaulted(choice(importFormats, { default: 'json', description: 'The format of the file.' })),
      dry_run: defaulted(Type.Boolean({ default: false, description: 'Answer with the chain and the findings, and store nothing.' })),
      group: Type.Optional(
        Type.String({
          maxLength: 256,
          description:
            "For LiteLLM: the model group at which the chain starts. Default: the only group that has fallbacks and is nobody's fallback.",
        }),
      ),
    }),
    // A body with `content` is validated as ImportRequest; any other body is the file.
    body: Type.Unknown(),
    describedBody: Type.Union([ImportRequest, Type.Object({}, { additionalProperties: true, description: 'The file itself.' })]),
    textTypes: ['application/yaml', 'text/plain'],
    bodyExample: { content: chainRequestExample },
    responses: {
      201: {
        schema: Imported,
        description: 'The chain.',
        example: { chain: chainExample, findings: [] },
        headers: { ...Location, ...ETag },
      },
      200: {
        schema: ImportPreview,
        description: 'With `dry_run`: the chain, which is not stored.',
        example: { chain: definitionExample, findings: [], warnings: [] },
      },
      ...failing(401, 403, 413, 415, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const exportApi = {
  tag: { name: 'exports', description: 'Chains in the formats of other programs.' },
  routes: exportRoutes,
  schemas: { Export, TemplateRequest, TemplateOutput, ImportRequest, Imported, ImportPreview },
};
