import type { ChainDefinition } from '../../model/chain.ts';
import type { Reason } from '../finding-list.ts';
import type { Apart, Groups } from '../rehearsal.ts';

/** The key in every configuration for a rehearsal. */
export const rehearsalKey = 'rehearsal';

/** The address of a fake provider, without a version path. */
export const fakeAddress = (base: string, provider: string): string => `${base}/${encodeURIComponent(provider)}`;

/** How the gateway of a target is rehearsed. */
export interface RehearsedGateway {
  /** The model that callers of an exported chain name. */
  readonly modelOf: (chain: ChainDefinition) => string;
  /** The environment of its program, which gets a key from the rehearsal. */
  readonly environmentOf: (given: NodeJS.ProcessEnv, key: string) => NodeJS.ProcessEnv;
  /** Where a running one tells its version: a path of its origin, and a field of the answer. Left out if it tells it nowhere. */
  readonly version?: { readonly path: string; readonly field: string };
  /** Left out if it keeps no failures of a prompt for later ones. */
  readonly memory?: {
    /** The sentence about an export that switches it off, and how it is kept. */
    readonly note: (option: string) => string;
    /** A user's file, or an export, without it. */
    readonly without: (file: unknown) => unknown;
  };
  /** The file with a timeout of `ms` milliseconds for each model that has none; null if every model has one. */
  readonly withTimeouts?: (file: unknown, ms: number) => unknown;
  /** What it does with streamed answers otherwise than any chain, as far as it was measured; left out without such differences. */
  readonly ofStreams?: (chain: ChainDefinition) => readonly Reason[];
  /** Leads a file of the gateway to the fake providers below `base`; left out if only exports can be rehearsed. */
  readonly redirectFile?: (file: unknown, base: string, options: RedirectOptions) => RedirectedFile;
}

/** What is known of a file besides its text. */
export interface RedirectOptions {
  readonly keepState: boolean;
  /** The names of the chain's providers. */
  readonly providers: readonly string[];
  /** The group that was asked for. */
  readonly group?: string | undefined;
}

/** A gateway's own file, which leads to fake providers. */
export interface RedirectedFile {
  readonly file: Readonly<Record<string, unknown>>;
  /** The model group of each provider that shares its group with others, by the name that an import gives the provider. */
  readonly groups: Groups;
  /** The providers that the gateway calls in no prompt in which it calls this one, since it draws one of them; left out if it goes on to the others. */
  readonly apart?: Apart;
  /** How often each of them is drawn, in proportion to the others. */
  readonly weights?: ReadonlyMap<string, number>;
  /** How long it leaves out a provider, in milliseconds; left out if it never does. */
  readonly cooldownMs?: number;
  /** The model group of each provider, by that name. */
  readonly models: ReadonlyMap<string, string>;
  /** What else was changed, as sentences. */
  readonly notes: readonly string[];
  /** What a change makes different from the file. */
  readonly reasons?: readonly Reason[];
}
