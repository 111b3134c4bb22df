import type { Provider } from '../../model/chain.ts';
import { variableOf } from '../params.ts';
import type { WarningList } from '../warning-list.ts';
import { listed } from '../wording.ts';
import { at } from './target.ts';

/** The kinds whose address and credentials are those of an account with a cloud. */
export type CloudKind = 'azure' | 'bedrock' | 'vertex_ai';

const cloudKinds: readonly (string | null)[] = ['azure', 'bedrock', 'vertex_ai'];

/** The provider's kind, if it is one of a cloud. */
export const cloudKind = ({ provider }: Provider): CloudKind | null => (cloudKinds.includes(provider) ? (provider as CloudKind) : null);

/** Reads the parameters of a provider of a cloud by their names in a target, and notes the ones that were not read. */
export class CloudParams {
  readonly #provider: Provider;
  readonly #index: number;
  readonly #target: string;
  readonly #warnings: WarningList;
  readonly #read = new Set<string>();

  constructor(provider: Provider, index: number, target: string, warnings: WarningList) {
    this.#provider = provider;
    this.#index = index;
    this.#target = target;
    this.#warnings = warnings;
  }

  /** The parameters that the provider has, by the target's names. `reference` writes one that refers to a variable. */
  named(names: Readonly<Record<string, string>>, reference: (variable: string) => string): Record<string, string> {
    return Object.fromEntries(
      Object.entries(names).flatMap(([called, param]) => {
        const value = this.#provider.params[param];
        if (value === undefined) return [];
        this.#read.add(param);
        const variable = variableOf(value);
        return [[called, variable === undefined ? String(value) : reference(variable)]];
      }),
    );
  }

  /** A parameter that the target needs as it is; `otherwise` with a warning if the provider has none, or a reference. */
  required(param: string, otherwise: string): string {
    const value = this.#provider.params[param];
    this.#read.add(param);
    if (typeof value === 'string' && variableOf(value) === undefined) return value;
    const why = value === undefined ? 'is missing' : 'refers to a variable';
    this.#warnings.loss(
      'params',
      at(this.#index, `params.${param}`),
      `${this.#provider.name}: ${this.#target} needs ${param}, which ${why}; replace ${otherwise} in the export.`,
    );
    return otherwise;
  }

  /** Warns of the parameters that were not read. */
  warnOfOthers(): void {
    const left = Object.keys(this.#provider.params).filter((param) => !this.#read.has(param));
    if (left.length > 0)
      this.#warnings.loss('params', at(this.#index, 'params'), `${this.#provider.name}: ${this.#target} has no ${listed(left)}.`);
  }
}
