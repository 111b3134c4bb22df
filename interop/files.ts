import { RehearsalError } from '../src/fallback/rehearse/program.ts';
import { rehearse } from '../src/fallback/rehearse/rehearse.ts';
import { exitCodeOf, reportOf } from '../src/fallback/rehearse/report.ts';
import { litellmFolder } from './extent.ts';

const path = (name: string) => new URL(name, import.meta.url).pathname;

/** The programs that `rehearse --run` starts. */
export const programs = {
  litellm: `'${litellmFolder}/bin/litellm' --config {config} --port {port}`,
  portkey: `'${process.execPath}' --import '${new URL('loopback.mjs', import.meta.url).href}' '${path('node_modules/@portkey-ai/gateway/build/start-server.js')}' --headless --port={port}`,
} as const;

/** A file that is rehearsed with its program, and what its rehearsal must end with. */
export interface RehearsedFile {
  /** Below `interop`. */
  readonly file: string;
  readonly program: keyof typeof programs;
  readonly group?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly codes: readonly number[];
  /** What the output must contain. */
  readonly says?: RegExp;
  /** Whether CI rehearses it; the others are only rehearsed by `rehearse-files.ts`. */
  readonly inCi?: true;
}

const explained = [0, 3];

/** Small files as people have them. */
const small: readonly RehearsedFile[] = [
  { file: 'small/two-keys.yaml', program: 'litellm', codes: explained, inCi: true },
  { file: 'small/tags.yaml', program: 'litellm', codes: explained },
  {
    file: 'small/wildcard-min.yaml',
    program: 'litellm',
    group: 'openai/gpt-4o',
    codes: explained,
    says: /^same +(both|whole) +healthy +openai\/gpt-4o +openai\/gpt-4o$/m,
  },
  { file: 'small/gemini-first.yaml', program: 'litellm', codes: explained },
  { file: 'small/no-content-policy.yaml', program: 'litellm', group: 'strict', codes: explained },
  { file: 'small/retry-after-setting.yaml', program: 'litellm', codes: explained },
  { file: 'small/ollama.yaml', program: 'litellm', group: 'local', codes: explained, says: /^same +both +healthy +local +local$/m },
  // LiteLLM calls main in no scene, which is explained.
  {
    file: 'small/unknown-provider.yaml',
    program: 'litellm',
    codes: [3],
    says: /^DIFFERS +(both|whole) +healthy +main +backup$/m,
  },
  {
    file: 'small/env-names.yaml',
    program: 'litellm',
    environment: { MAIN_NAME: 'main', MAIN_MODEL: 'openai/m1' },
    codes: [2],
    says: /model_name is in the variable MAIN_NAME/,
  },
  { file: 'small/too-many-rules.yaml', program: 'litellm', group: 'c', codes: [2], says: /name a group with fewer models/ },
  // The gateway calls one target four times and answers 429.
  { file: 'small/balance-with-4xx-retries.json', program: 'portkey', codes: [1, 3], inCi: true },
  {
    file: 'small/deepseek-first.json',
    program: 'portkey',
    codes: explained,
    says: /^same +(both|whole) +healthy +deepseek-chat +deepseek-chat$/m,
    inCi: true,
  },
  { file: 'small/single-with-retries.json', program: 'portkey', codes: explained },
];

const litellmShapes = [
  'affinity',
  'alias-list',
  'budgets',
  'credentials',
  'default-and-rest',
  'fallbacks-in-deployment',
  'missing-fallback',
  'orders',
  'own-retries',
  'shell-variables',
  'subscription-first',
  'three-hosts',
  'two-tiers',
  'unknown-retry-policy',
  'unknown-setting',
  'weighted-failover',
];
const portkeyShapes = ['balance', 'local-pair', 'retries-for-all', 'retries-of-targets', 'slugs'];

/** Shapes of files of public repositories: their names and values are others. */
const shapes: readonly RehearsedFile[] = [
  ...litellmShapes.map((name) => ({ file: `shapes/${name}.yaml`, program: 'litellm' as const, codes: explained })),
  { file: 'shapes/catch-all.yaml', program: 'litellm', group: 'any-name', codes: explained },
  { file: 'shapes/bedrock-accounts.yaml', program: 'litellm', codes: [2], says: /can't be redirected to fake providers/ },
  // LiteLLM does not start without its licence.
  { file: 'shapes/tag-budgets.yaml', program: 'litellm', codes: [2], says: /Tag budgets/ },
  { file: 'shapes/include.yaml', program: 'litellm', codes: [2], says: /include names other files/ },
  { file: 'shapes/config-map.yaml', program: 'litellm', codes: [2], says: /is a ConfigMap/ },
  { file: 'shapes/compose.yaml', program: 'litellm', codes: [2], says: /is a compose file/ },
  { file: 'shapes/portkey-targets-in-strategy.json', program: 'portkey', codes: [2], says: /targets is required/ },
  ...portkeyShapes.map((name) => ({ file: `shapes/portkey-${name}.json`, program: 'portkey' as const, codes: explained })),
];

/** All files that are rehearsed. */
export const rehearsedFiles: readonly RehearsedFile[] = [...small, ...shapes];

/** How a rehearsal ended, as the command prints it. */
export interface Ended {
  readonly code: number;
  readonly output: string;
}

const nothing = () => undefined;

/** Rehearses a file with a program, as the command does. */
export async function rehearseFile({ file, group, environment }: RehearsedFile, run: string): Promise<Ended> {
  const options = { config: path(file), run, ...(group === undefined ? {} : { group }) };
  try {
    const listener = { onStep: nothing, onProgress: nothing };
    const rehearsed = await rehearse(options, { ...process.env, ...environment }, listener, new AbortController().signal);
    return { code: exitCodeOf(rehearsed), output: reportOf(rehearsed) };
  } catch (error) {
    if (!(error instanceof RehearsalError)) throw error;
    return { code: 2, output: error.message };
  }
}

/** What is wrong with how a rehearsal ended; null if it is right. */
export function problemOf({ codes, says }: RehearsedFile, { code, output }: Ended): string | null {
  if (!codes.includes(code)) return `it ended with ${code}, not ${codes.join(' or ')}`;
  return says === undefined || says.test(output) ? null : `its output has no ${says}`;
}
