/** A gateway that is started for a rehearsal. */
interface GatewayProgram {
  /** The command that starts it; `FILE` stands for the name of the exported file. */
  readonly command: string;
  /** Where it then answers. */
  readonly url: string;
  /** The key that the command gives it; empty for none. */
  readonly key: string;
  /** The header that brings the configuration with each request; null for a gateway that reads a file when it starts. */
  readonly configHeader: string | null;
}

/** A program, a library or a file format that chains are exported to, or imported from. */
export interface Target {
  /** Its name for people. */
  readonly label: string;
  /** How the names of its files end. */
  readonly ending: string;
  readonly contentType: 'application/json' | 'application/yaml' | 'text/javascript';
  /** How a file for it is recognized, if files can be imported: all patterns occur in the text; without any, by its media type. */
  readonly importedBy: readonly RegExp[] | null;
  /** The version of YAML in which its program reads a file, if that is not 1.2. */
  readonly yaml?: '1.1';
  /** The versions of its program whose behaviour was measured. */
  readonly measured?: readonly string[];
  /** Whether a file may have several chains, each of which starts at a group of models. */
  readonly hasGroups?: true;
  /** Whether it has a single number of retries for all failures, so that `prefer` matters. */
  readonly hasOneRetryCount?: true;
  /** How an export leads to fake providers; not given if it has no addresses to replace. */
  readonly rehearsal?: {
    /** Whether a provider of Azure has an address, which can be replaced, and not the name of a resource. */
    readonly hasAzureAddress: boolean;
    /** Null if no program reads the file as it is. */
    readonly gateway: GatewayProgram | null;
  };
  /** What it can't express, for the documents. */
  readonly lacks: string;
  /** Where its exports were run, or how they were checked instead, for the documents. */
  readonly tested: { readonly run: string } | { readonly checked: string };
}

const targetsGiven = {
  litellm: {
    label: 'LiteLLM',
    ending: 'litellm.yaml',
    contentType: 'application/yaml',
    importedBy: [/\bmodel_list"?\s*:/],
    yaml: '1.1',
    measured: ['1.106.2', '1.110.2'],
    hasGroups: true,
    rehearsal: {
      hasAzureAddress: true,
      gateway: {
        command: 'LITELLM_MASTER_KEY=sk-rehearsal-of-this-chain litellm --config FILE --port 4000',
        url: 'http://127.0.0.1:4000/v1',
        key: 'sk-rehearsal-of-this-chain',
        configHeader: null,
      },
    },
    lacks: "retries per provider (its policy is the router's); ending on a condition",
    tested: { run: "LiteLLM's proxy" },
  },
  portkey: {
    label: 'Portkey',
    ending: 'portkey.json',
    contentType: 'application/json',
    importedBy: [
      /"(targets|provider|virtual_key)"\s*:/,
      /^(?![\s\S]*"(providers|model_list|model_id)"\s*:)/,
      /"(strategy|override_params|custom_host|virtual_key|retry)"\s*:/,
    ],
    measured: ['1.15.2'],
    rehearsal: {
      hasAzureAddress: false,
      gateway: {
        command: 'npx @portkey-ai/gateway --port=8787',
        url: 'http://127.0.0.1:8787/v1',
        key: '',
        configHeader: 'x-portkey-config',
      },
    },
    lacks: 'the difference between conditions of the same status; failover on an unusable answer',
    tested: { run: 'the gateway `@portkey-ai/gateway`' },
  },
  openrouter: {
    label: 'OpenRouter',
    ending: 'openrouter.json',
    contentType: 'application/json',
    importedBy: null,
    lacks: 'retries, timeouts, ending on a condition; more than three backups',
    tested: {
      checked:
        'Its SDK (`@openrouter/sdk`) sends the exported body to a local server. Failover happens at OpenRouter, which needs an account',
    },
  },
  langchain: {
    label: 'LangChain JS',
    ending: 'langchain.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    rehearsal: { hasAzureAddress: true, gateway: null },
    lacks: 'nothing',
    tested: { run: 'the exported module, with LangChain 1' },
  },
  'ai-sdk': {
    label: 'AI SDK',
    ending: 'ai-sdk.mjs',
    contentType: 'text/javascript',
    importedBy: null,
    rehearsal: { hasAzureAddress: true, gateway: null },
    lacks: 'nothing',
    tested: { run: 'the exported module, with AI SDK 7 and `ai-fallback` 3' },
  },
  bifrost: {
    label: 'Bifrost',
    ending: 'bifrost.json',
    contentType: 'application/json',
    importedBy: null,
    hasOneRetryCount: true,
    lacks: 'retries by condition; ending on a condition',
    tested: { checked: 'By its published schema. Its server could not be installed for a run' },
  },
  'envoy-ai-gateway': {
    label: 'Envoy AI Gateway',
    ending: 'envoy.yaml',
    contentType: 'application/yaml',
    importedBy: null,
    hasOneRetryCount: true,
    lacks: 'retries and timeouts by provider',
    tested: { checked: 'By its published schemas. Its programs could not be installed for a run' },
  },
  json: {
    label: 'JSON',
    ending: 'json',
    contentType: 'application/json',
    importedBy: [],
    rehearsal: { hasAzureAddress: true, gateway: null },
    lacks: 'nothing',
    tested: { run: 'an import, which gives the same chain' },
  },
  yaml: {
    label: 'YAML',
    ending: 'yaml',
    contentType: 'application/yaml',
    importedBy: [],
    lacks: 'nothing',
    tested: { run: 'an import, which gives the same chain' },
  },
} as const satisfies Readonly<Record<string, Target>>;

type Given = typeof targetsGiven;

export type ExportFormat = keyof Given;
export type ImportFormat = { [Format in ExportFormat]: Given[Format]['importedBy'] extends null ? never : Format }[ExportFormat];
/** The formats whose addresses an export can replace by those of the fake providers. */
export type RehearsalFormat = { [Format in ExportFormat]: Given[Format] extends { rehearsal: object } ? Format : never }[ExportFormat];
/** The formats of gateways that can be rehearsed. */
export type GatewayFormat = {
  [Format in RehearsalFormat]: Given[Format]['rehearsal']['gateway'] extends null ? never : Format;
}[RehearsalFormat];

/** The targets by the names of their formats, in the order of lists. `rules/targets/table.ts` has their exporters and importers. */
export const targets: Readonly<Record<ExportFormat, Target>> = targetsGiven;

export const exportFormats = Object.keys(targets) as ExportFormat[];
export const importFormats = exportFormats.filter((format): format is ImportFormat => targets[format].importedBy !== null);
export const rehearsalFormats = exportFormats.filter((format): format is RehearsalFormat => targets[format].rehearsal !== undefined);
export const gatewayFormats = rehearsalFormats.filter((format): format is GatewayFormat => gatewayOf(format) !== null);

/** The gateway of a format; null if no program reads its files. */
export function gatewayOf(format: GatewayFormat): GatewayProgram;
export function gatewayOf(format: RehearsalFormat): GatewayProgram | null;
export function gatewayOf(format: RehearsalFormat): GatewayProgram | null {
  return targets[format].rehearsal!.gateway;
}

/** A program with the versions that were measured, as `LiteLLM 1.106.2 and 1.110.2`; null for a format that was not. */
export function measuredOf(format: ExportFormat): string | null {
  const { label, measured } = targets[format];
  return measured === undefined ? null : `${label} ${measured.join(' and ')}`;
}

/** Guesses the format of a file to import from its name and its text. */
export function detectFormat(filename: string, text: string): ImportFormat {
  const known = importFormats.find((format) => {
    const { importedBy } = targets[format];
    return importedBy !== null && importedBy.length > 0 && importedBy.every((sign) => sign.test(text));
  });
  return known ?? (/\.ya?ml$/i.test(filename) || !/^\s*[{[]/.test(text) ? 'yaml' : 'json');
}
