import Type, { type Static } from 'typebox';

import { choice, defaulted, IdParams } from '../../kit/schemas.ts';
import { Chain, ChainRequest, chainExample, chainRequestExample } from './chain.ts';
import { closed, ETag, exampleId, failing, Location, optional, shortName, Warning } from './common.ts';
import { defineRoute } from './route.ts';

export const exportFormats = [
  'litellm',
  'portkey',
  'openrouter',
  'langchain',
  'ai-sdk',
  'bifrost',
  'envoy-ai-gateway',
  'json',
  'yaml',
] as const;
export const importFormats = ['litellm', 'portkey', 'json', 'yaml'] as const;
export const templateNames = ['env', 'runbook', 'curl'] as const;
/** What a target with one budget for all failures does where a chain mixes retries and failovers. */
export const preferences = ['failover', 'retry'] as const;

export type ExportFormat = (typeof exportFormats)[number];
export type ImportFormat = (typeof importFormats)[number];
export type TemplateName = (typeof templateNames)[number];

/** Caps of templates: characters of the text, bytes of what comes of it. */
export const maxTemplate = 65_536;
export const maxOutput = 1_048_576;

/** A chain's configuration in the form that another program reads. */
export const Export = Type.Object(
  {
    format: choice(exportFormats),
    filename: Type.String({ description: 'What the file is usually called.' }),
    content_type: Type.String({ description: 'The media type of `content`.' }),
    config: Type.Unknown({ description: 'The configuration as an object; a string for formats that are code.' }),
    content: Type.String({ description: 'The text to save.' }),
    lossless: Type.Boolean({ description: 'Whether the target behaves like the chain and an import gives the same chain.' }),
    warnings: Type.Array(Warning, { description: 'What the target cannot express.' }),
  },
  { ...closed, description: "A chain's configuration in the form that another program reads." },
);

export const TemplateRequest = Type.Object(
  {
    chain_id: optional(Type.String({ maxLength: 64, description: 'A chain that is kept; or `chain`.' })),
    chain: Type.Optional(Type.Union([ChainRequest, Type.Null()], { description: 'A chain that need not be kept; or `chain_id`.' })),
    template: optional(Type.String({ maxLength: maxTemplate, description: 'A Liquid template; or `template_name`.' })),
    template_name: optional(choice(templateNames, { description: 'A template that the service brings along; or `template`.' })),
    variables: optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Further values, each by its name.' })),
  },
  { ...closed, description: 'One of `chain_id` and `chain`, and one of `template` and `template_name`.' },
);

export const TemplateOutput = Type.Object(
  {
    output: Type.String({ description: 'What the template gives.' }),
    content_type: Type.String({ description: 'The media type of `output`.' }),
    warnings: Type.Array(Warning),
  },
  closed,
);

export const ImportRequest = Type.Object(
  {
    content: Type.Unknown({ description: 'The file: its text, or the object that it holds.' }),
    name: optional(shortName('What the chain is to be called.')),
  },
  { ...closed, description: 'A file that another program reads, to be made a chain of.' },
);

export const Imported = Type.Object(
  { chain: Chain, findings: Type.Array(Warning, { description: 'What was read differently from how it was written, or left out.' }) },
  closed,
);

export type Export = Static<typeof Export>;
export type TemplateRequest = Static<typeof TemplateRequest>;
export type TemplateOutput = Static<typeof TemplateOutput>;
export type ImportRequest = Static<typeof ImportRequest>;
export type Imported = Static<typeof Imported>;

export const exportChain = defineRoute({
  id: 'exportChain',
  method: 'POST',
  path: '/chains/{id}/export',
  tag: 'exports',
  access: 'read',
  summary: 'Export chain configuration',
  description:
    'Keys are never in it, only the names of environment variables. What the target cannot express is a warning; `raw=true` gives the text alone, as a download.',
  params: IdParams,
  query: Type.Object({
    format: defaulted(choice(exportFormats, { default: 'json', description: 'Who is to read it.' })),
    raw: defaulted(Type.Boolean({ default: false, description: 'The text alone, as a download.' })),
    prefer: defaulted(
      choice(preferences, {
        default: 'failover',
        description: 'For targets with one budget for all failures, where the chain mixes retries and failovers.',
      }),
    ),
  }),
  responses: {
    200: {
      schema: Export,
      description: 'The configuration.',
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
});

export const exportTemplate = defineRoute({
  id: 'exportTemplate',
  method: 'POST',
  path: '/export-template',
  tag: 'exports',
  access: 'read',
  summary: 'Export with a custom template',
  description: 'A Liquid template, sandboxed: no code, no files, unknown names refused, size and time capped.',
  body: TemplateRequest,
  bodyExample: { chain_id: exampleId, template: '{{ chain.name }}: {{ chain.providers | map: "name" | join: ", " }}' },
  responses: {
    200: {
      schema: TemplateOutput,
      description: 'What the template gives.',
      example: { output: 'production-chain: gpt-4o, claude', content_type: 'text/plain; charset=utf-8', warnings: [] },
    },
    ...failing(401, 404, 413, 415, 429),
  },
});

export const importChain = defineRoute({
  id: 'importChain',
  method: 'POST',
  path: '/import',
  tag: 'exports',
  access: 'write',
  summary: 'Make a chain of a file',
  description:
    'The file as `content`, or itself as the body. What could not be taken over, or was read differently from how it was written, is in `findings`.',
  query: Type.Object({ format: defaulted(choice(importFormats, { default: 'json', description: 'Who wrote it.' })) }),
  // Told apart from the file itself by its `content`, and checked as ImportRequest then.
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
    ...failing(401, 403, 413, 415, 429),
  },
});
