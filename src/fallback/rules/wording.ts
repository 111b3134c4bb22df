import { plural } from '../../kit/wording.ts';

/** How often something is done: `once`, `3 times`. */
export const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/** Words as a list in a sentence: `a, b and c`. */
export const listed = (words: readonly (string | number)[], joint = 'and'): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${joint} ${words.at(-1)}`;

/** The first of the words, and how many others there are, so that there are at most `most`. */
export const shortened = (words: readonly string[], most: number, noun: string): readonly string[] =>
  words.length <= most ? words : [...words.slice(0, most - 1), plural(words.length - most + 1, noun)];

/** Providers in a sentence, at most five of them: `a, b, c, d and 3 other providers`. */
export const listedProviders = (providers: readonly { readonly name: string }[]): string =>
  listed(
    shortened(
      providers.map(({ name }) => name),
      5,
      'other provider',
    ),
  );

/** A name that is not taken yet, which it then is: the text itself, or with a number appended. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}
