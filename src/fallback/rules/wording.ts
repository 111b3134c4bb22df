/** `1 attempt`, `2 attempts`. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** How often something is done: `once`, `3 times`. */
export const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/** Words as a list in a sentence: `a, b and c`. */
export const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;

/** The first of the words, and how many others there are, so that there are at most `most`. */
export const shortened = (words: readonly string[], most: number, noun: string): readonly string[] =>
  words.length <= most ? words : [...words.slice(0, most - 1), plural(words.length - most + 1, noun)];

/** A name that is not taken yet, which it then is: the text itself, or with a number appended. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}

/** A duration for people: `250 ms`, `12.5 s`, `7 min 40 s`, `1 h 45 min 9 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 119_950) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}
