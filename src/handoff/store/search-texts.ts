import { nextTurn } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import { hasPhrases, type Searched, searchableText } from '../rules/words.ts';
import type { Filtered, Matches, MatchReads, Newest, Placed, SearchBounds } from './search-matches.ts';

/** How many words of a phrase are counted. If there are rarer ones behind them, few packets have all words. */
const countedWords = 4;

/** How many bytes of packets are looked through for one page, and how many are read at once. */
const maxBytes = 8 * 1024 * 1024;
const maxBytesAtOnce = 256 * 1024;

/** A search without those phrases that the index would take too long for: it looks for their words, and `apart` are for the texts. */
export interface TakenApart {
  readonly phrases: Matches['phrases'];
  readonly apart: Matches['phrases'];
}

interface TextParts {
  matches: MatchReads;
  bounds: SearchBounds;
  /** How many bytes each of the packets has, by its number. */
  sizesOf(tenant: number, seqs: readonly number[]): Promise<{ seq: number; whole: number }[]>;
  /** Whole packets as JSON texts. */
  textsOf(tenant: number, seqs: readonly number[]): Promise<{ seq: number; text: string }[]>;
}

/**
 * Phrases of common words. SQLite compares the places of all of a phrase's words, packet by packet, and can't be stopped:
 * over a million packets that takes the better part of a second. Where each word of a phrase is common, packets that
 * have the words are many, and the newest of them are looked through for the phrase.
 */
export function createTextSearch({ matches, bounds, sizesOf, textsOf }: TextParts) {
  async function isDear(tenant: number, phrase: readonly string[]): Promise<boolean> {
    if (phrase.length === 1) return false;
    for (const word of phrase.slice(0, countedWords)) {
      if ((await matches.countWord(tenant, word)) <= bounds.ranked) return false;
      await nextTurn();
    }
    return true;
  }

  /** The packets of a page's candidates, in parts that are read at once; it ends where they have too many bytes together. */
  async function* parts(tenant: number, candidates: readonly Placed[]): AsyncGenerator<Placed[]> {
    const seqs = candidates.map(({ seq }) => seq);
    const sizes = new Map((await sizesOf(tenant, seqs)).map(({ seq, whole }) => [Number(seq), Number(whole)]));
    let part: Placed[] = [];
    let bytes = 0;
    let left = maxBytes;
    for (const candidate of candidates) {
      part.push(candidate);
      bytes += sizes.get(candidate.seq) ?? 0;
      if (bytes < maxBytesAtOnce) continue;
      yield part;
      left -= bytes;
      if (left <= 0) return;
      part = [];
      bytes = 0;
    }
    if (part.length > 0) yield part;
  }

  return {
    /** Takes the dear phrases of a search apart. */
    async takeApart({ tenant, phrases }: Matches): Promise<TakenApart> {
      const apart: (readonly string[])[] = [];
      const kept = new Map<string, readonly string[]>();
      for (const phrase of phrases) {
        const dear = await isDear(tenant, phrase);
        if (dear) apart.push(phrase);
        for (const one of dear ? phrase.map((word) => [word]) : [phrase]) kept.set(one.join(' '), one);
      }
      return { phrases: [...kept.values()], apart };
    },

    /** As `Matches.newest`, of the packets in whose texts the phrases stand. */
    async newest(search: Filtered, apart: Matches['phrases'], after: string, most: number): Promise<Newest> {
      const { found: candidates, end } = await matches.newest(search, after, bounds.readThrough);
      const found: Placed[] = [];
      let last: string | undefined;
      for await (const part of parts(search.tenant, candidates)) {
        const seqs = part.map(({ seq }) => seq);
        const texts = new Map((await textsOf(search.tenant, seqs)).map(({ seq, text }) => [Number(seq), text]));
        for (const candidate of part) {
          const text = texts.get(candidate.seq);
          // Without a text it was removed since it was found.
          if (text !== undefined && hasPhrases(searchableText(readJson(text) as Searched, ''), apart)) found.push(candidate);
        }
        last = part.at(-1)!.place;
        if (found.length >= most) break;
        // Others get their turn in between.
        await nextTurn();
      }
      const isWhole = last === candidates.at(-1)?.place && candidates.length < bounds.readThrough;
      return { found, end: isWhole ? end : last };
    },
  };
}
