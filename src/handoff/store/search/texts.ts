import { readJson } from '../../../kit/json.ts';
import { hasPhrases, type Searched, searchableText } from '../../rules/tokenizer.ts';
import type { Budget } from './budget.ts';
import type { FilteredQuery, FoundMatch, MatchReads, Newest, Phrase, SearchLimits, SearchTerms } from './matches.ts';

/** The most bytes of packets that are scanned for one page, and that one query reads. */
const maxBytes = 8 * 1024 * 1024;
const maxBytesAtOnce = 256 * 1024;

/** How long a byte of a packet takes, in steps of the search index. */
const stepsPerByte = 2;

interface TextDependencies {
  matches: MatchReads;
  limits: SearchLimits;
  budget: Budget;
  /** The size of each packet in bytes. */
  sizesOf: (tenant: number, seqs: readonly number[]) => Promise<{ seq: number; whole: number }[]>;
  /** The JSON texts of whole packets. */
  textsOf: (tenant: number, seqs: readonly number[]) => Promise<{ seq: number; text: string }[]>;
}

/**
 * Searches for phrases of common words. SQLite compares the positions of all words of a phrase, packet by packet and
 * without interruption: a phrase costs as much as its rarest word has matches, times its length. Where that is too much, the
 * newest packets that have all of its words are scanned for the phrase.
 */
export function createTextSearch({ matches, limits, budget, sizesOf, textsOf }: TextDependencies) {
  async function isExpensive(tenant: number, phrase: Phrase): Promise<boolean> {
    if (phrase.length === 1) return false;
    for (const word of phrase) {
      if ((await matches.countWord(tenant, word)) * phrase.length <= 2 * limits.readPositions) return false;
      await budget.pause();
    }
    return true;
  }

  /** Splits a page's candidates into parts for one query each; ends when they exceed `maxBytes`. */
  async function* parts(tenant: number, candidates: readonly FoundMatch[]): AsyncGenerator<FoundMatch[]> {
    const seqs = candidates.map(({ seq }) => seq);
    const sizes = new Map((await sizesOf(tenant, seqs)).map(({ seq, whole }) => [Number(seq), Number(whole)]));
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    budget.allow(stepsPerByte * Math.min(maxBytes, total));
    let part: FoundMatch[] = [];
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
    /** Replaces the expensive phrases of a search by their words; `textPhrases` are those phrases, which are looked up in the packets' texts. */
    async splitPhrases({ tenant, phrases }: SearchTerms) {
      const textPhrases: Phrase[] = [];
      const kept = new Map<string, Phrase>();
      for (const phrase of phrases) {
        const expensive = await isExpensive(tenant, phrase);
        if (expensive) textPhrases.push(phrase);
        for (const one of expensive ? phrase.map((word) => [word]) : [phrase]) kept.set(one.join(' '), one);
      }
      return { phrases: [...kept.values()], textPhrases };
    },

    /** Like `MatchReads.newest`, for the packets whose texts contain the phrases. */
    async newest(search: FilteredQuery, textPhrases: readonly Phrase[], after: string, most: number): Promise<Newest> {
      const { found: candidates, end } = await matches.newest(search, after, limits.scannedTexts);
      const found: FoundMatch[] = [];
      let last: string | undefined;
      for await (const part of parts(search.tenant, candidates)) {
        const seqs = part.map(({ seq }) => seq);
        const texts = new Map((await textsOf(search.tenant, seqs)).map(({ seq, text }) => [Number(seq), text]));
        for (const candidate of part) {
          const text = texts.get(candidate.seq);
          // A candidate without a text was deleted since it was found.
          if (text !== undefined && hasPhrases(searchableText(readJson(text) as Searched, ''), textPhrases)) found.push(candidate);
        }
        last = part.at(-1)!.sortKey;
        if (found.length >= most) break;
        // Lets other requests run.
        await budget.pause();
      }
      const isWhole = last === candidates.at(-1)?.sortKey && candidates.length < limits.scannedTexts;
      return { found, end: isWhole ? end : last };
    },
  };
}
