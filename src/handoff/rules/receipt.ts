import { hash } from 'node:crypto';
import type { Erasure } from '../model/erasure.ts';
import { canonicalJson } from './canonical-json.ts';

/** To whom deliveries of erased packets had gone out, and how many. */
type DeliveredTo = NonNullable<Erasure['delivered']>[number];

/** What an erasure has erased so far. */
export interface ErasureProgress {
  /** The number of rows, by store. */
  readonly rows: Readonly<Record<string, number>>;
  readonly delivered: readonly DeliveredTo[];
  /** When packets were last erased. */
  readonly at: string | null;
}

/** The progress of an erasure that has not begun. */
export const noProgress: ErasureProgress = { rows: {}, delivered: [], at: null };

interface Content {
  readonly rows: Readonly<Record<string, number>>;
  readonly delivered: readonly { readonly kind: string; readonly id: string; readonly url: string }[];
}

/** The progress with the contents that were erased. */
export function addErased({ rows, delivered, at }: ErasureProgress, contents: readonly Content[]): ErasureProgress {
  const sums: Record<string, number> = { ...rows };
  const targets = new Map(delivered.map((to) => [to.id, to]));
  for (const content of contents) {
    for (const [store, count] of Object.entries(content.rows)) sums[store] = (sums[store] ?? 0) + count;
    for (const { kind, id, url } of content.delivered) {
      const known = targets.get(id) ?? { kind, id, target: targetOf(kind, url), count: 0 };
      targets.set(id, { ...known, count: known.count + 1 });
    }
  }
  return { rows: sums, delivered: [...targets.values()], at };
}

/** Where deliveries went, without the parts of an address that may be secret. */
function targetOf(kind: string, url: string): string {
  if (kind === 'email' || url === '') return url;
  const { origin, pathname } = new URL(url);
  // The path of an incoming webhook of Slack is its secret.
  return kind === 'slack' ? origin : origin + pathname;
}

/** The digest of a receipt: SHA-256, in lower-case hexadecimal, of its canonical JSON (RFC 8785). */
export const receiptDigest = (receipt: Erasure): string => hash('sha256', canonicalJson(receipt));
