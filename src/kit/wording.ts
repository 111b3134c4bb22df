const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** `1 attempt`, `2 attempts`. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/**
 * A duration for people: milliseconds below a second, seconds below two minutes, then `7 min 40 s`, then `1 h 45 min 9 s`. The unit is
 * separate so that it can be styled; several units are all in `value`.
 */
export function durationParts(milliseconds: number): { value: string; unit: string } {
  if (milliseconds < 1000) return { value: plain.format(milliseconds < 10 ? milliseconds : Math.round(milliseconds)), unit: 'ms' };
  if (milliseconds < 119_950) return { value: plain.format(milliseconds / 1000), unit: 's' };
  const seconds = Math.round(milliseconds / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const [first, ...others] = parts.filter(([count]) => count > 0);
  if (others.length === 0) return { value: String(first![0]), unit: first![1] };
  return { value: [first!, ...others].map(([count, unit]) => `${count} ${unit}`).join(' '), unit: '' };
}

/** A duration as one text: `250 ms`, `12.5 s`, `7 min 40 s`. */
export function duration(milliseconds: number): string {
  const { value, unit } = durationParts(milliseconds);
  return unit === '' ? value : `${value} ${unit}`;
}

const isHighHalf = (text: string, index: number) =>
  /[\ud800-\udbff]/.test(text[index] ?? '') && /[\udc00-\udfff]/.test(text[index + 1] ?? '');

/** A part of a text, without the character that either end would cut in two. */
export function partOf(text: string, start: number, end: number): string {
  const first = start > 0 && isHighHalf(text, start - 1) ? start + 1 : start;
  return text.slice(first, end < text.length && isHighHalf(text, end - 1) ? end - 1 : end);
}

/** The first characters of a text, at most `length`. No character is cut in two, which would show as U+FFFD. */
export const beginningOf = (text: string, length: number): string => partOf(text, 0, length);
