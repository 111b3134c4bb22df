import { readJson } from '../../kit/json.ts';
import { type Checker, compileSchema } from './compile.ts';

/** The most bytes of the compiled schemas that are kept, of all owners and of one. */
const maxBytes = 48 * 1024 * 1024;
const maxOwnerBytes = 8 * 1024 * 1024;

interface Entry {
  readonly owner: number;
  readonly checker: Checker;
  readonly bytes: number;
}

/** The compiled schemas that were used last, bounded by their bytes, together and by owner. */
export class CheckerCache {
  /** By owner and schema; the one that was used last comes last. */
  readonly #entries = new Map<string, Entry>();
  readonly #bytesOf = new Map<number, number>();
  readonly #limits: { readonly all: number; readonly owner: number };
  #bytes = 0;

  constructor(limits: { readonly all: number; readonly owner: number } = { all: maxBytes, owner: maxOwnerBytes }) {
    this.#limits = limits;
  }

  /** About how many bytes the kept schemas take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The checker of an owner's schema, as JSON, which is compiled if it is not kept. @throws Error if the schema has a fault */
  of(owner: number, schema: string): Checker {
    const known = this.#entries.get(keyOf(owner, schema));
    if (known !== undefined) return known.checker;
    const result = compileSchema(readJson(schema));
    if ('faults' in result) throw new Error(`A stored schema can't be compiled: ${result.faults[0]?.detail}`);
    return result.checker;
  }

  /** Keeps a checker as the one that was used last, with the bytes that it takes now, and drops those that are too many. */
  keep(owner: number, schema: string, checker: Checker): void {
    const key = keyOf(owner, schema);
    this.#drop(key);
    const bytes = checker.bytes + 2 * schema.length;
    this.#entries.set(key, { owner, checker, bytes });
    this.#add(owner, bytes);
    for (const [other, entry] of this.#entries) {
      const isOwnerFull = (this.#bytesOf.get(owner) ?? 0) > this.#limits.owner;
      if (!isOwnerFull && this.#bytes <= this.#limits.all) return;
      if (!isOwnerFull || entry.owner === owner) this.#drop(other);
    }
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#add(entry.owner, -entry.bytes);
  }

  #add(owner: number, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#bytesOf.get(owner) ?? 0) + bytes;
    if (own === 0) this.#bytesOf.delete(owner);
    else this.#bytesOf.set(owner, own);
  }
}

const keyOf = (owner: number, schema: string) => `${owner} ${schema}`;
