/** The width of a line, in columns. */
const width = 100;

/** A text cut to one line of at most `room` columns, without control characters; wide characters count as two columns. */
function fit(text: string, room: number): string {
  const plain = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
  let used = 0;
  let shown = '';
  for (const character of plain) {
    used += wide.test(character) ? 2 : 1;
    if (used > room) return `${[...shown].slice(0, -4).join('').trimEnd()} ...`;
    shown += character;
  }
  return shown;
}

/** Prints a step of the demonstration as one line; `line` is the number of its input line. */
export function say(line: number | undefined, step: string, text: string): void {
  const label = line === undefined ? '' : `line ${line}`;
  const start = `${label.padEnd(9)} ${step.padEnd(11)} `;
  console.log(start + fit(text, width - start.length));
}
