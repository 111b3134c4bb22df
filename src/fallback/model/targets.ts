/** A program, a library or a file format that chains are exported to, or imported from. */
export interface Target {
  /** Its name for people. */
  readonly label: string;
  /** How the names of its files end. */
  readonly ending: string;
  readonly contentType: 'application/json' | 'application/yaml' | 'text/javascript';
  /** How a file for it is recognized, if files can be imported: all patterns occur in the text; without any, by its media type. */
  readonly importedBy: readonly RegExp[] | null;
  /** Whether it has a single number of retries for all failures, so that `prefer` matters. */
  readonly oneBudget: boolean;
  /** What it can't express, for the documents. */
  readonly lacks: string;
  /** Where its exports were run, or how they were checked instead, for the documents. */
  readonly judged: { readonly run: string } | { readonly checked: string };
}

const targetsGiven = {
  litellm: {
    label: 'LiteLLM',
    ending: 'litellm.yaml',
    contentType: 'application/yaml',
    importedBy: [/\bmodel_list"?\s*:/],
    oneBudget: false,
    lacks: "retries per provider (its policy is the router's); ending on a condition",
    judged: { run: "LiteLLM's proxy" },
  },
  portkey: {
    label: 'Portkey',
    ending: 'portkey.json',
    contentType: 'application/json',
    importedBy: [/"targets"\s*:/, /"strategy"\s*:/],
    oneBudget: false,
    lacks: 'the difference between conditions of the same status; failover on an unusable answer',
    judged: { run: 'the gateway `@portkey-ai/gateway`' },
  },
  openrouter: {
    label: 'OpenRouter',
    ending: 'openrouter.json',
    contentType: 'application/json',
    importedBy: null,
    oneBudget: false,
    lacks: 'retries, timeouts, ending on a condition; more than three backups',
    judged: {
      checked:
        'Its SDK (`@openrouter/sdk`) sends the exported body to a local server. Failover happens at OpenRouter, which needs an account',
    },
  },
  langchain: {
    label: 'LangChain JS',
    ending: 'langchain.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    oneBudget: false,
    lacks: 'nothing',
    judged: { run: 'the exported module, with LangChain' },
  },
  'ai-sdk': {
    label: 'AI SDK',
    ending: 'ai-sdk.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    oneBudget: false,
    lacks: 'nothing',
    judged: { run: 'the exported module, with the AI SDK and `ai-fallback`' },
  },
  bifrost: {
    label: 'Bifrost',
    ending: 'bifrost.json',
    contentType: 'application/json',
    importedBy: null,
    oneBudget: true,
    lacks: 'retries by condition; ending on a condition',
    judged: { checked: 'By its published schema. Its server could not be installed for a run' },
  },
  'envoy-ai-gateway': {
    label: 'Envoy AI Gateway',
    ending: 'envoy.yaml',
    contentType: 'application/yaml',
    importedBy: null,
    oneBudget: true,
    lacks: 'retries and timeouts by provider',
    judged: { checked: 'By its published schemas. Its programs could not be installed for a run' },
  },
  json: {
    label: 'JSON',
    ending: 'json',
    contentType: 'application/json',
    importedBy: [],
    oneBudget: false,
    lacks: 'nothing',
    judged: { run: 'an import, which gives the same chain' },
  },
  yaml: {
    label: 'YAML',
    ending: 'yaml',
    contentType: 'application/yaml',
    importedBy: [],
    oneBudget: false,
    lacks: 'nothing',
    judged: { run: 'an import, which gives the same chain' },
  },
} as const satisfies Readonly<Record<string, Target>>;

export type ExportFormat = keyof typeof targetsGiven;
export type ImportFormat = {
  [Format in ExportFormat]: (typeof targetsGiven)[Format]['importedBy'] extends null ? never : Format;
}[ExportFormat];

/** The targets by the names of their formats, in the order of lists. `rules/targets/table.ts` has their exporters and importers. */
export const targets: Readonly<Record<ExportFormat, Target>> = targetsGiven;

export const exportFormats = Object.keys(targets) as ExportFormat[];
export const importFormats = exportFormats.filter((format): format is ImportFormat => targets[format].importedBy !== null);

/** Guesses the format of a file to import from its name and its text. */
export function detectFormat(filename: string, text: string): ImportFormat {
  const known = importFormats.find((format) => {
    const { importedBy } = targets[format];
    return importedBy !== null && importedBy.length > 0 && importedBy.every((sign) => sign.test(text));
  });
  return known ?? (/\.ya?ml$/i.test(filename) || !/^\s*[{[]/.test(text) ? 'yaml' : 'json');
}
