import type { Packet } from '../model/packet.ts';

/**
 * A word: letters and digits in a row, with the marks that belong to them. Scripts that are written without spaces give
 * one word a character, in the midst of other scripts too, and a query in them is read as a phrase. Both databases are
 * handed these words, so that a search finds the same on both.
 */
const word =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]&&[\p{L}\p{N}]]\p{M}*|[[\p{L}\p{N}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]][[\p{L}\p{N}\p{M}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]]*/gv;
const asciiWord = /[a-z0-9]+/g;

/** Symbols part words. Taken apart some would become letters: the trade mark sign, say. */
const symbols = /\p{S}/gu;

/**
 * Accents, and the points of Arabic and Hebrew, which are mostly left out. Other marks spell: the vowels of India's
 * scripts and of Thai, and what tells one kana from another.
 */
const accents = /[[\p{M}&&[\p{sc=Zinh}\p{sc=Arab}\p{sc=Hebr}\p{sc=Cyrl}\p{sc=Grek}\p{sc=Latn}]]--[\u3099\u309a]]/gv;

/** More marks on one letter than any language has, as in Unicode's stream-safe format: they would be sorted for minutes. */
const marksBeyond = /(\p{M}{30})\p{M}+/gu;

/** Letters that many write as two, or without their stroke; sigma at the end of a word is a sigma. */
const spellings: Record<string, string> = { ß: 'ss', œ: 'oe', æ: 'ae', ø: 'o', '\u03c2': '\u03c3' };
const respelled = /[ßœæø\u03c2]/g;

/** The text as it is cut into words: composed characters taken apart, lower case, without accents, one spelling. */
function fold(text: string): string {
  const kept = text.replace(symbols, ' ').replace(marksBeyond, '$1');
  return kept
    .normalize('NFKD')
    .replace(accents, '')
    .toLowerCase()
    .replace(respelled, (letter) => spellings[letter]!);
}

/** Particles that stand behind Korean words, the longest first, as `fold` leaves them. */
const particles = [
  ...[
    '에게서',
    '으로서',
    '으로써',
    '이라고',
    '한테서',
    '에서',
    '에게',
    '한테',
    '으로',
    '까지',
    '부터',
    '처럼',
    '보다',
    '이나',
    '라고',
    '께서',
    '마다',
    '조차',
    '밖에',
  ],
  ...['은', '는', '이', '가', '을', '를', '의', '에', '와', '과', '로', '도', '만'],
].map((particle) => ({ folded: particle.normalize('NFKD'), stem: particle.length > 1 ? 1 : 2 }));

/** How many syllables a word of Korean has: each begins with one of these letters. */
const syllables = /[\u1100-\u1112]/g;
const isKorean = /[\u1100-\u1112]/;

/** A Korean word without its particle, so that the word is found with any; behind a short one a syllable may be its own. */
function withoutParticle(word: string): string {
  const particle = particles.find(({ folded, stem }) => word.endsWith(folded) && countSyllables(word) - countSyllables(folded) >= stem);
  return particle === undefined ? word : word.slice(0, -particle.folded.length);
}

const countSyllables = (word: string): number => word.match(syllables)?.length ?? 0;

/** Plain text: ASCII, and the spaces, dashes, quotation marks and dots that prose has beside it. Its words are ASCII. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is what is asked.
const plain = /^[\x00-\x7f\xa0\u2010-\u2027]*$/;

/** Those of its characters that are not ASCII. */
const plainMarks = /[\xa0\u2010-\u2027]/g;

/** The longest word kept; what is longer (a key, a digest) is cut. */
const maxWordLength = 64;

/** The words of a text, in order: lower case, without accents and Korean particles. */
export function wordsOf(text: string): string[] {
  const found = plain.test(text) ? text.toLowerCase().match(asciiWord) : fold(text).match(word);
  if (found === null) return [];
  for (let index = 0; index < found.length; index += 1) {
    if (isKorean.test(found[index]!)) found[index] = withoutParticle(found[index]!);
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

/** The parts of a packet that hold what is searched. */
export type Searched = Pick<Packet, 'context' | 'decisions' | 'actions' | 'hitl'>;

/** What of a packet is searched: summary, conversation, artifacts, decisions, actions and checkpoint, part by part. */
export function searchableTexts({ context, decisions, actions, hitl }: Searched): string[] {
  const texts = [context.summary];
  for (const { content } of context.conversation_state) texts.push(content);
  for (const { key, value } of context.artifacts) texts.push(`${key} ${plainText(value)}`);
  for (const { decision, rationale, alternatives } of decisions) {
    texts.push(`${decision} ${rationale} ${alternatives === undefined ? '' : plainText(alternatives)}`);
  }
  for (const { description } of actions.pending) texts.push(description);
  for (const { description, result } of actions.completed) texts.push(`${description} ${result}`);
  for (const { description, error } of actions.failed) texts.push(`${description} ${error}`);
  if (hitl !== null) texts.push(hitl.question, hitl.reason);
  return texts;
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
export function searchableWords(packet: Searched): string[] {
  const words: string[] = [];
  let length = 0;
  for (const text of searchableTexts(packet)) {
    for (const one of wordsOf(text)) {
      words.push(one);
      length += one.length;
    }
    words.push(partEnd);
    length += 1;
    if (words.length >= maxWords) break;
  }
  if (words.length > maxWords) words.length = maxWords;
  if (fits(length, words.length)) return words;
  let left = maxWordBytes;
  const end = words.findIndex((one) => {
    left -= Buffer.byteLength(one) + bytesAWord;
    return left < 0;
  });
  return end === -1 ? words : words.slice(0, end);
}

/** Whether words of so many characters in all surely are within the bytes allowed: none takes more than three. */
const fits = (length: number, words: number): boolean => 3 * length + bytesAWord * words <= maxWordBytes;

/** The same words as one text: `prefix`, which is ASCII, before each and a space between. */
export function searchableText(packet: Searched, prefix: string): string {
  return quickText(searchableTexts(packet), ` ${prefix}`) ?? prefix + searchableWords(packet).join(` ${prefix}`);
}

/** The words of the texts with `lead` before each; undefined when they may be more than are kept and must be counted. */
function quickText(texts: readonly string[], lead: string): string | undefined {
  const leadBytes = Buffer.from(lead, 'latin1');
  const endBytes = Buffer.from(lead + partEnd, 'latin1');
  let result = '';
  let at = 0;
  let left = maxWords;
  for (const text of texts) {
    // At worst every other character is a word.
    left -= (text.length + 3) / 2;
    if (left < 0 || at + (text.length + 1) * (lead.length + 1) + endBytes.length > scratch.length) return undefined;
    const end = writeWords(text, leadBytes, at);
    if (end === undefined) {
      const words = wordsOf(text);
      left -= words.length;
      result += scratch.toString('latin1', 0, at) + words.map((one) => lead + one).join('');
      at = 0;
    } else at = end;
    for (let byte = 0; byte < endBytes.length; byte += 1) scratch[at++] = endBytes[byte]!;
  }
  result += scratch.toString('latin1', 0, at);
  return left < 0 || !fits(result.length, maxWords) ? undefined : result.slice(1);
}

/** For each character of ASCII, the letter or digit that it counts as; 0 for those that part words. */
const folded = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code).toLowerCase();
  return /[a-z0-9]/.test(character) ? character.charCodeAt(0) : 0;
});

/** Where `writeWords` writes. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Where it reads from: with a lead before each word, no text that fits there is longer. */
const source = Buffer.allocUnsafeSlow((3 * scratch.length) / 4);

/**
 * Writes the words of a plain text into `scratch` from `start` on, `lead` before each, and gives where they end;
 * undefined when the text is not plain. From bytes to bytes, without a string for each word, it takes a quarter of the
 * time.
 */
function writeWords(text: string, lead: Uint8Array, start: number): number | undefined {
  let length = source.write(text);
  if (length !== text.length) {
    if (!plain.test(text)) return undefined;
    length = source.write(text.replace(plainMarks, ' '));
  }
  let at = start;
  let index = 0;
  while (index < length) {
    let character = folded[source[index++]!]!;
    if (character === 0) continue;
    for (let byte = 0; byte < lead.length; byte += 1) scratch[at++] = lead[byte]!;
    const longest = at + maxWordLength;
    while (character !== 0) {
      scratch[at++] = character;
      character = index < length ? folded[source[index++]!]! : 0;
    }
    at = Math.min(at, longest);
  }
  return at;
}

/** The most words of a query that count. */
const maxQueryWords = 16;

/** Stands behind a word of a query that is the beginning of the words meant. */
const beginning = '*';

/** A query's piece that ends in a beginning: of two characters or more, with the star directly behind it. */
const endsInBeginning = /[\p{L}\p{N}\p{M}]\*$/u;

/**
 * A query as phrases, all of which must occur: a word alone is a phrase of one; "quoted words" must follow one another.
 * The last word of a phrase may end in `*`: then it is the beginning of a word. None is there twice, and 16 words count.
 */
export function phrasesOf(query: string): string[][] {
  const phrases = new Map<string, string[]>();
  for (const [index, part] of query.split('"').entries()) {
    // Between an odd number of quotes stands a phrase; outside, each word (or run of characters) stands for itself.
    const pieces = index % 2 === 1 ? [part.trim()] : part.split(/\s+/);
    for (const piece of pieces) {
      const words = wordsOf(piece);
      const last = words.at(-1);
      if (last === undefined) continue;
      if (endsInBeginning.test(piece) && last.length > 1) words[words.length - 1] = last + beginning;
      phrases.set(words.join(' '), words);
    }
  }
  let left = maxQueryWords;
  return [...phrases.values()].flatMap((phrase) => {
    const kept = phrase.slice(0, left);
    left -= kept.length;
    return kept.length > 0 ? [kept] : [];
  });
}

/** The characters that a query's word begins with, where it is a beginning. */
export const beginningOf = (word: string): string | undefined => (word.endsWith(beginning) ? word.slice(0, -1) : undefined);

/** Whether all of the phrases stand in a packet's words: `text` has them with a space between, as `searchableText` gives them without a prefix. */
export function hasPhrases(text: string, phrases: readonly (readonly string[])[]): boolean {
  const spaced = ` ${text} `;
  return phrases.every((phrase) => {
    const begins = beginningOf(phrase.at(-1) ?? '');
    const wanted = ` ${phrase.join(' ')}`;
    return spaced.includes(begins === undefined ? `${wanted} ` : wanted.slice(0, -1));
  });
}

/** Whether a word of a text is the one that a query names. */
function isMeant(word: string | undefined, named: string): boolean {
  const begins = beginningOf(named);
  return begins === undefined ? word === named : word?.startsWith(begins) === true;
}

/** How much of a text a snippet shows, in characters before and in all. */
const before = 40;
const length = 160;

/** How much of one text is looked through for a snippet, in characters. */
const maxSeen = 16 * 1024;

/** The snippet of the first of the texts in which a phrase stands; the beginning of the summary when none does. */
export function snippetOf(texts: readonly string[], phrases: readonly (readonly string[])[]): string {
  for (const text of texts) {
    const snippet = snippetIn(text, phrases);
    if (snippet !== undefined) return snippet;
  }
  return cut(texts[0] ?? '', 0);
}

/**
 * The surroundings, as they were written, of the place where the longest of the phrases that are in the text stands
 * first; undefined when none is.
 */
export function snippetIn(text: string, phrases: readonly (readonly string[])[]): string | undefined {
  const seen = text.length > maxSeen ? text.slice(0, maxSeen) : text;
  const longest = phrases.toSorted((a, b) => b.join('').length - a.join('').length);
  const at = plain.test(seen) ? placeInPlain(seen, longest) : placeIn(seen, longest);
  return at === undefined ? undefined : cut(text, Math.max(0, at - before));
}

/** One line of the text from a place on; dots stand where there is more. */
function cut(text: string, start: number): string {
  const end = Math.min(text.length, start + length);
  const line = text.slice(start, end).toWellFormed().replace(/\s+/g, ' ').trim();
  return `${start > 0 ? '...' : ''}${line}${end < text.length ? '...' : ''}`;
}

/** Where the first of the phrases that is in a plain text begins. */
function placeInPlain(text: string, phrases: readonly (readonly string[])[]): number | undefined {
  const lower = text.toLowerCase();
  for (const phrase of phrases) {
    const [named = ''] = phrase;
    const first = beginningOf(named) ?? named;
    for (let at = lower.indexOf(first); at !== -1; at = lower.indexOf(first, at + 1))
      if (!folded[lower.charCodeAt(at - 1)] && beginsWith(lower, at, phrase)) return at;
  }
  return undefined;
}

/** Whether the words of a plain text in lower case, from a place on, are those of the phrase. */
function beginsWith(lower: string, at: number, phrase: readonly string[]): boolean {
  asciiWord.lastIndex = at;
  return phrase.every((one) => isMeant(asciiWord.exec(lower)?.[0].slice(0, maxWordLength), one));
}

/** The pieces of a text, as it was written, of which words are made. */
const pieces =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]&&[\p{L}\p{N}]][\p{M}\uff9e\uff9f]*|[[\p{L}\p{N}\p{M}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]]+/gv;

/** Where the first of the phrases that is in any text begins. */
function placeIn(text: string, phrases: readonly (readonly string[])[]): number | undefined {
  const whole = fold(text);
  const likely = phrases.filter(([first = '']) => whole.includes(beginningOf(first) ?? first));
  if (likely.length === 0) return undefined;
  const words: string[] = [];
  const places: number[] = [];
  const rest = text.matchAll(pieces);
  /** The word with this number, read when it is asked for: most places are found near the beginning. */
  const wordAt = (number: number): string | undefined => {
    while (words.length <= number) {
      const { value } = rest.next();
      if (value === undefined) return undefined;
      for (const one of wordsOf(value[0])) {
        words.push(one);
        places.push(value.index);
      }
    }
    return words[number];
  };
  for (const phrase of likely) {
    for (let at = 0; wordAt(at) !== undefined; at += 1)
      if (phrase.every((one, offset) => isMeant(wordAt(at + offset), one))) return places[at];
  }
  return undefined;
}
