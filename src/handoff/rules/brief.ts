import type { Brief, BriefSection, Omission } from '../model/brief.ts';
import { onlyVerified, takesOnlyVerified } from '../model/offered.ts';
import type { Packet } from '../model/packet.ts';
import { shownName } from './answered-by.ts';
import { type LatestQuestion, questionAtChange } from './question-state.ts';

/** A part of a packet before it is cut. */
interface Part {
  readonly packet_id: string;
  readonly kind: BriefSection['kind'];
  /** One entry per action, decision, message and so on; a summary, question or answer is one entry. */
  readonly entries: readonly string[];
  /** Which entries matter more if not all fit. */
  readonly keep: 'first' | 'last';
}

/** How a brief is written. What a format adds around the texts counts towards the limit. */
interface BriefFormat {
  /** What precedes a part; `opensPacket` if it is the first part of its packet. */
  heading(packetId: string, kind: BriefSection['kind'], opensPacket: boolean): string;
  /** A text as the format writes it; never longer than the text by more than `perLine` for each of its lines. */
  body(text: string): string;
  /** What follows the last part. */
  ending(omitted: readonly Omission[]): string;
  /** The longest possible ending. */
  readonly reserved: number;
}

/** Sections of a JSON answer: only their texts count. */
const json: BriefFormat = { heading: () => '', body: (text) => text, ending: () => '', reserved: 0 };

const titles: Record<BriefSection['kind'], string> = {
  summary: 'Summary',
  question: 'Open question',
  answer: 'Answer of a person',
  pending: 'Pending actions',
  decisions: 'Decisions',
  dependencies: 'Unsatisfied dependencies',
  failed: 'Failed actions',
  artifacts: 'Artifacts (keys)',
  conversation: 'Last messages',
};

/** A Markdown text. Packet texts are quoted, so that none of their lines can pose as a heading of the brief. */
const markdown: BriefFormat = {
  heading: (packetId, kind, opensPacket) => `${opensPacket ? `## Packet ${packetId}\n\n` : ''}### ${titles[kind]}\n\n`,
  body: (text) => `${text.replace(/^/gm, '> ')}\n\n`,
  ending(omitted) {
    const count = omitted.reduce((sum, one) => sum + one.count, 0);
    return count === 0 ? '' : `Left out: ${count} entries; see GET /api/v1/packets/{id} of each packet.\n`;
  },
  reserved: 90,
};

/** Statuses in which a dependency needs no attention. */
const satisfied = new Set(['satisfied', 'completed', 'done', 'resolved']);

/**
 * A packet's brief, built packet by packet: first `add` the packet, then its ancestors, the newest first, while `fitsMore`.
 * Equal packets give equal briefs.
 */
export class BriefBuilder {
  readonly #format: BriefFormat;
  readonly #sections: BriefSection[] = [];
  readonly #omitted: Omission[] = [];
  readonly #background: Part[] = [];
  readonly #pieces: string[] = [];
  readonly #hrefOf: (packetId: string) => string;
  #left: number;
  #opened: string | undefined;

  /** @param maxChars the most Unicode code points of the brief */
  constructor(maxChars: number, format: 'json' | 'markdown', hrefOf: (packetId: string) => string) {
    this.#format = format === 'json' ? json : markdown;
    this.#left = maxChars - this.#format.reserved;
    this.#hrefOf = hrefOf;
  }

  /** Whether another packet would add a text worth reading. */
  get fitsMore(): boolean {
    return this.#left >= leastLeft;
  }

  add(packet: Packet): void {
    const parts = mainParts(packet).filter(({ entries }) => entries.length > 0);
    this.#background.push(...backgroundParts(packet).filter(({ entries }) => entries.length > 0));
    this.#write(parts);
  }

  /** Notes that a packet and those before it are not part of the brief. */
  omitAncestors(packetId: string, count = 1): void {
    this.#omitted.push({ packet_id: packetId, kind: 'ancestors', count, href: this.#hrefOf(packetId) });
  }

  /** Writes the artifacts and conversations, which come last, and returns the brief as JSON and as text. */
  finish(packetId: string): { brief: Brief; text: string } {
    const byKind = (kind: Part['kind']) => this.#background.filter((part) => part.kind === kind);
    this.#write([...byKind('artifacts'), ...byKind('conversation')]);
    const chars = this.#sections.reduce((sum, { text }) => sum + lengthOf(text), 0);
    const brief = { packet_id: packetId, chars, sections: this.#sections, omitted: this.#omitted };
    return { brief, text: this.#pieces.join('') + this.#format.ending(this.#omitted) };
  }

  /** Writes parts in order. If not all fit, a part takes what the later ones leave, but at least half of the space. */
  #write(parts: readonly Part[]): void {
    const wholes = parts.map((part) => this.#costOf(part, part.entries.join('\n')));
    let rest = wholes.reduce((sum, cost) => sum + cost, 0);
    for (const [index, part] of parts.entries()) {
      rest -= wholes[index]!;
      this.#writePart(part, Math.max(Math.floor(this.#left / 2), this.#left - rest));
    }
  }

  #writePart(part: Part, space: number): void {
    const { packet_id, kind, entries } = part;
    const { text, missing } = fit(part, (candidate) => this.#costOf(part, candidate) <= space);
    if (missing > 0) this.#omitted.push({ packet_id, kind, count: Math.min(missing, entries.length), href: this.#hrefOf(packet_id) });
    if (text === '') return;
    this.#left -= this.#costOf(part, text);
    this.#sections.push({ packet_id, kind, text });
    this.#pieces.push(this.#format.heading(packet_id, kind, packet_id !== this.#opened), this.#format.body(text));
    this.#opened = packet_id;
  }

  #costOf({ packet_id, kind }: Part, text: string): number {
    return lengthOf(this.#format.heading(packet_id, kind, packet_id !== this.#opened)) + lengthOf(this.#format.body(text));
  }
}

/** The free space below which a brief is full, in characters. */
const leastLeft = 100;

/** The most characters of a brief. */
const maxBrief = 100_000;

/** The shortest part of an entry that is worth showing, in characters. */
const leastCut = 20;

function mainParts(packet: Packet): Part[] {
  const { id, context, actions, decisions, dependencies } = packet;
  const part = (kind: Part['kind'], entries: readonly string[]): Part => ({ packet_id: id, kind, entries, keep: 'first' });
  const lines = <T>(kind: Part['kind'], items: readonly T[], line: (item: T) => string) =>
    part(
      kind,
      items.map((item) => oneLine(line(item))),
    );
  const latest = questionAtChange(packet);
  const answer = latest.state === 'answered' ? latest.answer : null;
  return [
    part('summary', [context.summary]),
    part('question', latest.state === 'none' || answer !== null ? [] : [questionText(latest)]),
    part(
      'answer',
      latest.state !== 'answered'
        ? []
        : [
            `${latest.question.question}\n${shownName(latest.answer)}: ${latest.answer.response}${latest.answer.notes ? ` (${latest.answer.notes})` : ''}`,
          ],
    ),
    lines('pending', actions.pending, ({ id: action, description, assignee, priority, depends_on = [] }) => {
      const notes = [assignee && `for ${assignee}`, priority, depends_on.length > 0 && `after ${depends_on.join(', ')}`].filter(Boolean);
      return `[${action}] ${description}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`;
    }),
    lines(
      'decisions',
      decisions,
      ({ id: decision, decision: text, rationale }) => `[${decision}] ${text}${rationale ? `, because: ${rationale}` : ''}`,
    ),
    lines(
      'dependencies',
      dependencies.filter(({ status }) => !satisfied.has(status?.toLowerCase() ?? '')),
      ({ id: dependency, description, status }) => `[${dependency}] ${description}${status ? ` (${status})` : ''}`,
    ),
    lines('failed', actions.failed, ({ id: action, description, error }) => `[${action}] ${description}${error ? `: ${error}` : ''}`),
  ];
}

function backgroundParts({ id, context }: Packet): Part[] {
  const keys = context.artifacts.map(({ key }) => oneLine(key));
  const messages = context.conversation_state.map(({ role, content }) => `${oneLine(role)}: ${content}`);
  return [
    { packet_id: id, kind: 'artifacts', entries: keys, keep: 'first' },
    { packet_id: id, kind: 'conversation', entries: messages, keep: 'last' },
  ];
}

function questionText(latest: Exclude<LatestQuestion, { state: 'none' }>): string {
  const { question, reason, options = [] } = latest.question;
  const choices =
    options.length === 0
      ? ''
      : `\nOptions: ${options.map((option) => (typeof option === 'string' ? option : JSON.stringify(option))).join(' | ')}`;
  const isToAnswer = latest.state === 'draft' || latest.state === 'open';
  const needed =
    isToAnswer && takesOnlyVerified({ ...latest.question, ...('asked' in latest ? latest.asked : {}) }) ? `\n${onlyVerified}` : '';
  return `${question}${reason ? `\nReason: ${reason}` : ''}${choices}${needed}`;
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();

/** As many entries as fit, in their order; the first that does not is cut at a word. `missing` counts entries that are not whole. */
function fit({ entries, keep }: Part, fits: (text: string) => boolean): { text: string; missing: number } {
  const all = entries.join('\n');
  if (fits(all)) return { text: all, missing: 0 };
  // Each entry takes a line, so no more than this many can fit.
  const ordered = keep === 'first' ? entries.slice(0, maxBrief) : entries.slice(-maxBrief).reverse();
  const join = (kept: readonly string[]) => (keep === 'first' ? kept : kept.toReversed()).join('\n');
  // The number of whole entries that fit, by bisection: their text grows with their number.
  let whole = 0;
  for (let step = 2 ** Math.ceil(Math.log2(ordered.length + 1)); step >= 1; step /= 2)
    if (whole + step < ordered.length && fits(join(ordered.slice(0, whole + step)))) whole += step;
  const kept = ordered.slice(0, whole);
  const cut = cutToFit(ordered[whole]!, (piece) => fits(join([...kept, piece])));
  return { text: join(cut === '' ? kept : [...kept, cut]), missing: entries.length - whole };
}

/** The longest prefix of a text that fits, cut after a word where it has spaces, with an ellipsis; empty if it would be too short. */
function cutToFit(text: string, fits: (piece: string) => boolean): string {
  const points = Array.from(text.slice(0, 2 * maxBrief));
  let length = 0;
  for (let step = 2 ** Math.ceil(Math.log2(points.length + 1)); step >= 1; step /= 2)
    if (length + step < points.length && fits(`${points.slice(0, length + step).join('')} …`)) length += step;
  if (length < leastCut) return '';
  const piece = points.slice(0, length).join('');
  const atWord = /\s/.test(points[length]!) ? piece : piece.replace(/\s\S*$/, '');
  return `${atWord.trimEnd()} …`;
}

/** The length of a text in Unicode code points; for a text that is longer than any brief, a lower bound without counting. */
function lengthOf(text: string): number {
  if (text.length > 2 * maxBrief) return text.length / 2;
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}
