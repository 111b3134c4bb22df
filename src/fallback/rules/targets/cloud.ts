import type { Provider } from '../../model/chain.ts';
import { variableOf } from '../params.ts';
import { listed } from '../wording.ts';
import type { ExportedProvider } from './target.ts';

/** The kinds whose address and credentials are those of an account with a cloud. */
type CloudKind = 'azure' | 'bedrock' | 'vertex_ai';

const cloudKinds: readonly (string | null)[] = ['azure', 'bedrock', 'vertex_ai'];

/** The provider's kind, if it is one of a cloud. */
export const cloudKind = ({ provider }: Provider): CloudKind | null => (cloudKinds.includes(provider) ? (provider as CloudKind) : null);

/** What a target needs to reach a provider of a cloud, with a warning of the parameters that it does not take; null for other providers. */
export function cloudForm<Form>(
  exported: ExportedProvider,
  target: string,
  forms: Record<CloudKind, (params: CloudParams) => Form>,
): Form | null {
  const kind = cloudKind(exported.provider);
  const params = new CloudParams(exported, target);
  const form = kind === null ? null : forms[kind](params);
  params.warnOfOthers();
  return form;
}

/** Reads the parameters of a provider of a cloud by their names in a target, and notes the ones that were not read. */
export class CloudParams {
  readonly #provider: ExportedProvider;
  readonly #target: string;
  readonly #read = new Set<string>();

  constructor(provider: ExportedProvider, target: string) {
    this.#provider = provider;
    this.#target = target;
  }

  /** The parameters that the provider has, by the target's names. `reference` writes one that refers to a variable. */
  named(names: Readonly<Record<string, string>>, reference: (variable: string) => string): Record<string, string> {
    return Object.fromEntries(
      Object.entries(names).flatMap(([called, param]) => {
        const value = this.#take(param);
        const variable = variableOf(value);
        return value === undefined ? [] : [[called, variable === undefined ? String(value) : reference(variable)]];
      }),
    );
  }

  /** A parameter that the target needs as it is; `otherwise` with a warning if the provider has none, or a reference. */
  required(param: string, otherwise: string): string {
    const value = this.#take(param);
    if (typeof value === 'string' && variableOf(value) === undefined) return value;
    const why = value === undefined ? 'is missing' : 'refers to a variable';
    this.#loss(`params.${param}`, `needs ${param}, which ${why}; replace ${otherwise} in the export`);
    return otherwise;
  }

  /** Warns of the parameters that were not read. */
  warnOfOthers(): void {
    const left = Object.keys(this.#provider.provider.params).filter((param) => !this.#read.has(param));
    if (left.length > 0) this.#loss('params', `has no ${listed(left)}`);
  }

  #take(param: string): unknown {
    this.#read.add(param);
    return this.#provider.provider.params[param];
  }

  #loss(field: string, why: string): void {
    this.#provider.loss('params', field, `${this.#provider.provider.name}: ${this.#target} ${why}.`);
  }
}
