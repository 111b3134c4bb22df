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
  /** How its exports are judged, for the documents. */
  readonly judged: string;
}

const targetsGiven = {
  litellm: {
    label: 'LiteLLM',
    ending: 'litellm.yaml',
    contentType: 'application/yaml',
    importedBy: [/\bmodel_list"?\s*:/],
    oneBudget: false,
    lacks: "retries per provider (its policy is the router's); ending on a condition",
    judged:
      "Run: LiteLLM's proxy loads the file and routes requests; the calls at each provider and the answer equal the simulation's, except for what the warnings name",
  },
  portkey: {
    label: 'Portkey',
    ending: 'portkey.json',
    contentType: 'application/json',
    importedBy: [/"targets"\s*:/, /"strategy"\s*:/],
    oneBudget: false,
    lacks: 'the difference between conditions of the same status; failover on an unusable answer',
    judged:
      "Run: requests go through the gateway `@portkey-ai/gateway`; the calls at each provider and the answer equal the simulation's, except for what the warnings name",
  },
  openrouter: {
    label: 'OpenRouter',
    ending: 'openrouter.json',
    contentType: 'application/json',
    importedBy: null,
    oneBudget: false,
    lacks: 'retries, timeouts, ending on a condition; more than three backups',
    judged:
      'Sent by its SDK (`@openrouter/sdk`) to a local server, which received the exported body; failover happens at OpenRouter and was not run',
  },
  langchain: {
    label: 'LangChain JS',
    ending: 'langchain.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    oneBudget: false,
    lacks: 'nothing',
    judged: "Run: the code is loaded and called; calls and answer equal the simulation's, for every failure",
  },
  'ai-sdk': {
    label: 'AI SDK',
    ending: 'ai-sdk.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    oneBudget: false,
    lacks: 'nothing',
    judged: "Run with `ai-fallback`: the code is loaded and called; calls and answer equal the simulation's, for every failure",
  },
  bifrost: {
    label: 'Bifrost',
    ending: 'bifrost.json',
    contentType: 'application/json',
    importedBy: null,
    oneBudget: true,
    lacks: 'retries by condition; ending on a condition',
    judged: 'Checked against its published schema; not run, since no package has its server',
  },
  'envoy-ai-gateway': {
    label: 'Envoy AI Gateway',
    ending: 'envoy.yaml',
    contentType: 'application/yaml',
    importedBy: null,
    oneBudget: true,
    lacks: 'retries and timeouts by provider',
    judged: 'Checked against schemas of its documented fields; not run, since no package has its programs',
  },
  json: {
    label: 'JSON',
    ending: 'json',
    contentType: 'application/json',
    importedBy: [],
    oneBudget: false,
    lacks: 'nothing',
    judged: 'Imported again: always the same chain',
  },
  yaml: {
    label: 'YAML',
    ending: 'yaml',
    contentType: 'application/yaml',
    importedBy: [],
    oneBudget: false,
    lacks: 'nothing',
    judged: 'Imported again: always the same chain',
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
