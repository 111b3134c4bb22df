import type { Packet } from '../model/packet.ts';

/**
 * A word: letters and digits in a row. Scripts that are written without spaces give one word a character, in the midst
 * of other scripts too, and a query in them is read as a phrase. Both databases are handed these words, so that a
 * search finds the same on both.
 */
const word =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]&&[\p{L}\p{N}]]|[[\p{L}\p{N}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]]+/gv;
const asciiWord = /[a-z0-9]+/g;
const marks = /\p{M}/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is what is asked.
const isAscii = /^[\x00-\x7f]*$/;

/** The longest word kept; what is longer (a key, a digest) is cut. */
const maxWordLength = 64;

/** The words of a text, in order: lower case, without accents. */
export function wordsOf(text: string): string[] {
  const found = isAscii.test(text)
    ? text.toLowerCase().match(asciiWord)
    : text.normalize('NFKD').replace(marks, '').toLowerCase().match(word);
  if (found === null) return [];
  for (let index = 0; index < found.length; index += 1) {
    // The cut may fall into a character of two halves; half of one has no UTF-8.
    if (found[index]!.length > maxWordLength) found[index] = found[index]!.slice(0, maxWordLength).toWellFormed();
  }
  return found;
}

/** The most words of one packet that are indexed. */
const maxWords = 20_000;

/** The most room they may take: PostgreSQL indexes at most 1 MiB of one packet, its own bytes for each word included. */
const maxWordBytes = 1_000_000;
const bytesAWord = 16;

/** What of a packet is searched: summary, conversation, artifacts, decisions and actions, part by part. */
export function searchableTexts({ context, decisions, actions }: Packet): string[] {
  return [
    context.summary,
    ...context.conversation_state.map(({ content }) => content),
    ...context.artifacts.map(({ key, value }) => `${key} ${plainText(value)}`),
    ...decisions.map(({ decision, rationale, alternatives = [] }) => `${decision} ${rationale} ${plainText(alternatives)}`),
    ...actions.pending.map(({ description }) => description),
    ...actions.completed.map(({ description, result }) => `${description} ${result}`),
    ...actions.failed.map(({ description, error }) => `${description} ${error}`),
  ];
}

/** Everything that can be read in a JSON value. JSON's own text would spell line breaks as letters. */
function plainText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return value.map(plainText).join(' ');
  return Object.entries(value)
    .map(([name, one]) => `${name} ${plainText(one)}`)
    .join(' ');
}

/** Stands behind every part, so that no phrase runs from one into the next; no query has this word. */
const partEnd = '_';

/** The words by which a packet is found. */
export function searchableWords(packet: Packet): string[] {
  const words = searchableTexts(packet)
    .flatMap((text) => [...wordsOf(text), partEnd])
    .slice(0, maxWords);
  let left = maxWordBytes;
  const end = words.findIndex((one) => {
    left -= Buffer.byteLength(one) + bytesAWord;
    return left < 0;
  });
  return end === -1 ? words : words.slice(0, end);
}

/** The most words of a query that count. */
const maxQueryWords = 32;

/** A query as phrases, all of which must occur: a word alone is a phrase of one; "quoted words" must follow one another. */
export function phrasesOf(query: string): string[][] {
  const phrases: string[][] = [];
  for (const [index, part] of query.split('"').entries()) {
    // Between an odd number of quotes stands a phrase; outside, each word (or run of characters) stands for itself.
    const pieces = index % 2 === 1 ? [part] : part.split(/\s+/);
    for (const piece of pieces) {
      const words = wordsOf(piece);
      if (words.length > 0) phrases.push(words);
    }
  }
  let left = maxQueryWords;
  return phrases.flatMap((phrase) => {
    const kept = phrase.slice(0, left);
    left -= kept.length;
    return kept.length > 0 ? [kept] : [];
  });
}

/** How much of a text a snippet shows, in characters before and in all. */
const before = 40;
const length = 160;

/** The surroundings of the first place where the query's words occur; the beginning of the summary when none is seen. */
export function snippetOf(texts: readonly string[], phrases: readonly string[][]): string {
  const wanted = [...new Set(phrases.flat())].sort((a, b) => b.length - a.length);
  for (const text of texts) {
    const plain = text.normalize('NFKD').replace(marks, '').toLowerCase();
    // Where taking accents off moves nothing, a place in the plain text is the same place in the text.
    const source = plain.length === text.length ? text : plain;
    const at = wanted.map((one) => plain.indexOf(one)).find((index) => index !== -1);
    if (at === undefined) continue;
    const start = Math.max(0, at - before);
    const end = Math.min(source.length, start + length);
    const cut = source.slice(start, end).toWellFormed().replace(/\s+/g, ' ').trim();
    return `${start > 0 ? '...' : ''}${cut}${end < source.length ? '...' : ''}`;
  }
  return (texts[0] ?? '').slice(0, length).toWellFormed();
}
