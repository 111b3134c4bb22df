import { beginningOf, partOf } from '../../kit/wording.ts';
import type { Packet } from '../model/packet.ts';

/**
 * A word: a run of letters and digits with their combining marks. In scripts that are written without spaces, each
 * character is a word, also within text of other scripts, and a query in them is treated as a phrase. Both databases
 * index these words, so that a search finds the same packets on both.
 */
const word =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]&&[\p{L}\p{N}]]\p{M}*|[[\p{L}\p{N}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]][[\p{L}\p{N}\p{M}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]]*/gv;
const asciiWord = /[a-z0-9]+/g;

/** Symbols separate words. They are removed before normalisation, which would turn some into letters (the trade mark sign). */
const symbols = /\p{S}/gu;

/**
 * Accents, and the points of Arabic and Hebrew, which writers usually omit. Other marks are part of the spelling: the
 * vowels of Indic scripts and Thai, and the voicing marks of kana.
 */
const accents = /[[\p{M}&&[\p{sc=Zinh}\p{sc=Arab}\p{sc=Hebr}\p{sc=Cyrl}\p{sc=Grek}\p{sc=Latn}]]--[\u3099\u309a]]/gv;

/** More marks on one letter than any language uses, as in Unicode's stream-safe format: normalising them could take minutes. */
const marksBeyond = /(\p{M}{30})\p{M}+/gu;

/** Letters that are often written as two letters or without their stroke or dot, and the final sigma. */
const spellings: Record<string, string> = {
  ...{ ß: 'ss', œ: 'oe', æ: 'ae', þ: 'th', ø: 'o', ł: 'l', đ: 'd', ð: 'd', ħ: 'h', ŧ: 't', ı: 'i', ĸ: 'k' },
  '\u03c2': '\u03c3',
};
const respelled = new RegExp(`[${Object.keys(spellings).join('')}]`, 'g');

/** Signs that are not seen: soft hyphens, zero-width signs and marks of direction; and the tatweel, which only makes a word longer. */
const unseen = /[\p{Cf}\u0640]/gu;

/** Digits of other scripts, which are the same numbers. */
const digits = /[\p{Nd}--[0-9]]/gv;
const isDigit = /^\p{Nd}$/u;

/** A digit of any script as one of ASCII: the ten of a script follow one another. */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0)!;
  let value = 0;
  while (isDigit.test(String.fromCodePoint(code - value - 1))) value += 1;
  return String(value % 10);
}

/** Normalises a text before it is split into words: decomposed (NFKD), lower case, without accents, in one spelling. */
function fold(text: string): string {
  const kept = text.replace(symbols, ' ').replace(unseen, '').replace(marksBeyond, '$1');
  return kept
    .normalize('NFKD')
    .replace(accents, '')
    .toLowerCase()
    .replace(respelled, (letter) => spellings[letter]!)
    .replace(digits, asciiDigit);
}

/** Particles that follow Korean words, longest first, as normalised by `fold`. */
const particles = [
  ...'에게서 으로서 으로써 이라고 한테서 에서 에게 한테 으로 까지 부터 처럼 보다 이나 라고 께서 마다 조차 밖에'.split(' '),
  ...'은 는 이 가 을 를 의 에 와 과 로 도 만'.split(' '),
].map((particle) => ({ folded: particle.normalize('NFKD'), stem: particle.length > 1 ? 1 : 2 }));

/** The initial letters of Korean syllables: their count is the number of syllables. */
const syllables = /[\u1100-\u1112]/g;
const isKorean = /[\u1100-\u1112]/;

/**
 * Strips the particle from a Korean word, so that the word is found with any particle. A short stem keeps an
 * ending of one syllable, which may belong to it.
 */
function withoutParticle(word: string): string {
  const particle = particles.find(({ folded, stem }) => word.endsWith(folded) && countSyllables(word) - countSyllables(folded) >= stem);
  return particle === undefined ? word : word.slice(0, -particle.folded.length);
}

const countSyllables = (word: string): number => word.match(syllables)?.length ?? 0;

/** Plain text: ASCII, and the non-ASCII spaces, dashes, quotation marks and dots common in prose. Its words are ASCII. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole ASCII range is meant.
const plain = /^[\x00-\x7f\xa0\u2010-\u2027]*$/;

/** The non-ASCII characters of plain text. */
const plainMarks = /[\xa0\u2010-\u2027]/g;

/** The most characters of a word that are kept; longer words (keys, digests) are truncated. */
const maxWordLength = 64;

/** The words of a text, in order: lower case, without accents and Korean particles. */
export function wordsOf(text: string): string[] {
  const found = plain.test(text) ? text.toLowerCase().match(asciiWord) : fold(text).match(word);
  if (found === null) return [];
  for (let index = 0; index < found.length; index += 1) {
    if (isKorean.test(found[index]!)) found[index] = withoutParticle(found[index]!);
    // Truncation may split a surrogate pair, and a lone surrogate can't be encoded in UTF-8.
    if (found[index]!.length > maxWordLength) found[index] = beginningOf(found[index]!, maxWordLength).toWellFormed();
  }
  return found;
}

/** The most characters that are cut into words at once: a normalised text may be many times as long. */
const maxPieceLength = 16_384;

/** The end of a piece of a text: after a mark or space, or before a character that is a word by itself. */
const pieceEnd = /(?<=[\p{P}\p{Z}\p{S}\n\t])|(?=[\u3041-\u3096\u4e00-\u9fff\u0e01-\u0e2e])/gu;

/** How many characters before the longest possible end of a piece are searched for a better one. */
const pieceEndWithin = 1024;

/**
 * The pieces of a text, which have the same words as the text. Only a word of thousands of characters may be divided, of which
 * the first 64 count.
 */
function* piecesOf(text: string): Generator<string> {
  let start = 0;
  while (text.length - start > maxPieceLength) {
    const longest = start + maxPieceLength;
    const last = text.slice(longest - pieceEndWithin, longest);
    let end = longest;
    for (const { index } of last.matchAll(pieceEnd)) if (index > 0) end = longest - pieceEndWithin + index;
    yield text.slice(start, end).toWellFormed();
    start = end;
  }
  yield text.slice(start);
}

/** The most words of one packet that are indexed. */
const maxWords = 20_000;

/** The most bytes that these words may take: PostgreSQL indexes at most 1 MiB per packet, including its overhead for each word. */
const maxWordBytes = 1_000_000;
const overheadBytes = 16;

/** The parts of a packet that contain searchable text. */
export type Searched = Pick<Packet, 'context' | 'decisions' | 'actions' | 'hitl'>;

/** The searchable texts of a packet: summary, conversation, artifacts, decisions, actions and checkpoint. */
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

/** The text in a JSON value. `JSON.stringify` would turn line breaks into the letter n. */
function plainText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return value.map(plainText).join(' ');
  return Object.entries(value)
    .map(([name, one]) => `${name} ${plainText(one)}`)
    .join(' ');
}

/** The separator after every part, so that no phrase matches across two parts; no query contains this word. */
const partEnd = '_';

/** The words that are indexed for a packet. */
export function searchableWords(packet: Searched): string[] {
  const words: string[] = [];
  let length = 0;
  for (const text of searchableTexts(packet)) {
    for (const piece of piecesOf(text)) {
      for (const one of wordsOf(piece)) {
        words.push(one);
        length += one.length;
      }
      if (words.length >= maxWords) break;
    }
    words.push(partEnd);
    length += 1;
    if (words.length >= maxWords) break;
  }
  if (words.length > maxWords) words.length = maxWords;
  if (fits(length, words.length)) return words;
  let left = maxWordBytes;
  const end = words.findIndex((one) => {
    left -= Buffer.byteLength(one) + overheadBytes;
    return left < 0;
  });
  return end === -1 ? words : words.slice(0, end);
}

/** Whether words with this total length surely fit: a character takes at most three bytes. */
const fits = (length: number, words: number): boolean => 3 * length + overheadBytes * words <= maxWordBytes;

/** The same words as one text, separated by spaces, each with `prefix`, which is ASCII. */
export function searchableText(packet: Searched, prefix: string): string {
  return quickText(searchableTexts(packet), ` ${prefix}`) ?? prefix + searchableWords(packet).join(` ${prefix}`);
}

/** The words of the texts, each after `lead`; undefined when they might exceed the maximum and must be counted. */
function quickText(texts: readonly string[], lead: string): string | undefined {
  const leadBytes = Buffer.from(lead, 'latin1');
  const endBytes = Buffer.from(lead + partEnd, 'latin1');
  let result = '';
  let at = 0;
  let left = maxWords;
  for (const text of texts) {
    // In the worst case every second character is a word.
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

/** Maps each ASCII character to the lower-case letter or digit it counts as, or to 0 if it separates words. */
const folded = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code).toLowerCase();
  return /[a-z0-9]/.test(character) ? character.charCodeAt(0) : 0;
});

/** The output buffer of `writeWords`. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** The input buffer of `writeWords`: a longer text would not fit in the output, where each word has a lead. */
const source = Buffer.allocUnsafeSlow((3 * scratch.length) / 4);

/**
 * Writes the words of a plain text into `scratch` from `start` on, each after `lead`, and returns where they end;
 * undefined when the text is not plain. Copying bytes instead of making a string for each word takes a quarter of the time.
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

/** Marks a word of a query as a prefix. */
const star = '*';

/** The end of a piece of a query that ends in a prefix: the star must directly follow a word. */
const endsInPrefix = /[\p{L}\p{N}\p{M}]\*$/u;

/**
 * Parses a query into phrases, all of which must occur: a single word is a phrase of one; "quoted words" must occur in
 * sequence. The last word of a phrase may end in `*`, which makes it a prefix of at least two characters. Duplicate
 * phrases are dropped, and only the first 16 words count.
 */
export function phrasesOf(query: string): string[][] {
  const phrases = new Map<string, string[]>();
  for (const [index, part] of query.split('"').entries()) {
    // Odd parts are inside quotes. Outside, each run without spaces is a phrase of its own.
    const pieces = index % 2 === 1 ? [part.trim()] : part.split(/\s+/);
    for (const piece of pieces) {
      const words = wordsOf(piece);
      const last = words.at(-1);
      if (last === undefined) continue;
      if (endsInPrefix.test(piece) && last.length > 1) words[words.length - 1] = last + star;
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

/** The prefix that a query's word stands for; undefined when it is a whole word. */
export const queryPrefix = (word: string): string | undefined => (word.endsWith(star) ? word.slice(0, -1) : undefined);

/** Whether a packet's words contain all the phrases. `text` is the packet's `searchableText` with an empty prefix. */
export function hasPhrases(text: string, phrases: readonly (readonly string[])[]): boolean {
  const spaced = ` ${text} `;
  return phrases.every((phrase) => {
    const prefix = queryPrefix(phrase.at(-1) ?? '');
    const wanted = ` ${phrase.join(' ')}`;
    return spaced.includes(prefix === undefined ? `${wanted} ` : wanted.slice(0, -1));
  });
}

/** Whether a word of a text matches a word of a query. */
function isMeant(word: string | undefined, named: string): boolean {
  const prefix = queryPrefix(named);
  return prefix === undefined ? word === named : word?.startsWith(prefix) === true;
}

/** The characters of a snippet before the match, and in total. */
const before = 40;
const length = 160;

/** How many characters of a text are searched for a snippet. */
const maxSeen = 16 * 1024;

/** The snippet from the first text that contains a phrase; the beginning of the summary when none does. */
export function snippetOf(texts: readonly string[], phrases: readonly (readonly string[])[]): string {
  for (const text of texts) {
    const snippet = snippetIn(text, phrases);
    if (snippet !== undefined) return snippet;
  }
  return cut(texts[0] ?? '', 0);
}

/**
 * An excerpt of the original text around the first occurrence of the longest phrase that it contains; undefined when it
 * contains none.
 */
export function snippetIn(text: string, phrases: readonly (readonly string[])[]): string | undefined {
  const seen = text.length > maxSeen ? text.slice(0, maxSeen) : text;
  const longest = phrases.toSorted((a, b) => b.join('').length - a.join('').length);
  const at = plain.test(seen) ? placeInPlain(seen, longest) : placeIn(seen, longest);
  return at === undefined ? undefined : cut(text, Math.max(0, at - before));
}

/** An excerpt of the text as one line, with dots where text was left out. */
function cut(text: string, start: number): string {
  const end = Math.min(text.length, start + length);
  const line = partOf(text, start, end).replace(/\s+/g, ' ').trim();
  return `${start > 0 ? '...' : ''}${line}${end < text.length ? '...' : ''}`;
}

/** The position in a plain text of the first phrase that it contains. */
function placeInPlain(text: string, phrases: readonly (readonly string[])[]): number | undefined {
  const lower = text.toLowerCase();
  for (const phrase of phrases) {
    const [named = ''] = phrase;
    const first = queryPrefix(named) ?? named;
    for (let at = lower.indexOf(first); at !== -1; at = lower.indexOf(first, at + 1))
      if (!folded[lower.charCodeAt(at - 1)] && beginsWith(lower, at, phrase)) return at;
  }
  return undefined;
}

/** Whether the words of a lower-case plain text match the phrase from a position on. */
function beginsWith(lower: string, at: number, phrase: readonly string[]): boolean {
  asciiWord.lastIndex = at;
  return phrase.every((one) => isMeant(asciiWord.exec(lower)?.[0].slice(0, maxWordLength), one));
}

/** The pieces of an original text from which words are made. */
const pieces =
  /[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]&&[\p{L}\p{N}]][\p{M}\uff9e\uff9f]*|[[\p{L}\p{N}\p{M}\p{Cf}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]]+/gv;

/** The position in any text of the first phrase that it contains. */
function placeIn(text: string, phrases: readonly (readonly string[])[]): number | undefined {
  const whole = fold(text);
  const likely = phrases.filter(([first = '']) => whole.includes(queryPrefix(first) ?? first));
  if (likely.length === 0) return undefined;
  const words: string[] = [];
  const places: number[] = [];
  const rest = text.matchAll(pieces);
  /** The word with this number, read on demand: most matches are near the beginning. */
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
