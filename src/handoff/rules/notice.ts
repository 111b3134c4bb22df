import { askerName } from '../model/asker.ts';
import type { ChannelEvent } from '../model/channel.ts';
import { choicesOf } from '../model/options.ts';
import type { Packet } from '../model/packet.ts';
import { shownName } from './answered-by.ts';
import { cut } from './cut.ts';
import { plain } from './html.ts';
import { type AskedRecord, latestQuestion } from './question-state.ts';
import { roughWords } from './time-left.ts';
import { isOverdue } from './times.ts';

/** The content of a message to a channel: texts of the packet, cut, without control characters, not yet escaped. */
export interface Notice {
  /** A line such as `Frontline agent asks`. */
  readonly heading: string;
  /** The subject of a mail: one line. */
  readonly subject: string;
  readonly question?: string;
  /** Paragraphs with a title each. */
  readonly parts: readonly { readonly title: string; readonly text: string }[];
  /** The page to answer on. */
  readonly link?: string | undefined;
  /** The time left, and who can answer or why the message has no link. */
  readonly hint: string;
}

const maxQuestion = 2000;
const maxPart = 800;
const maxLine = 120;
const maxOptions = 20;

const block = (text: string, length: number): string => cut(plain(text).trim(), length);

/** A text on one line, as a mail header needs it. */
const line = (text: string): string => cut(plain(text.replace(/[\s\p{Cc}]+/gu, ' ')).trim(), maxLine);

/** The message of a test. */
export const testNotice: Notice = {
  heading: 'A test message',
  subject: 'A test message from the handoff packet service',
  parts: [],
  hint: 'Questions to people will arrive here.',
};

/** Whether a message about an event at `since` is still true: false when its question is no longer open, or was asked again. */
export function isStillSo(event: ChannelEvent, packet: Packet, since: string, now: Date): boolean {
  if (event === 'overdue') return isOverdue(packet);
  const latest = latestQuestion(packet, now);
  if (latest.state === 'none' || latest.state === 'draft' || latest.asked.requested_at > since) return false;
  return latest.state === (event === 'answered' ? 'answered' : 'open');
}

/** The message about a packet that is overdue. */
export function overdueNotice({ id, status, metadata, context, due_at = '' }: Packet): Notice {
  const [from, to] = [line(metadata.source_agent.name), line(metadata.target_agent.name)];
  const parts = [
    { title: 'Summary', text: block(context.summary, maxPart) },
    { title: 'Due', text: due_at },
    { title: 'Status', text: status },
    { title: 'Packet', text: id },
  ];
  return {
    heading: `A packet from ${from} for ${to} is overdue`,
    subject: line(`Overdue: ${context.summary}`),
    parts: withText(parts),
    hint: '',
  };
}

/** The message about a packet's question. `link`: the page to answer on, or a sentence that says why there is none. */
export function noticeOf(event: ChannelEvent, packet: Packet, link: { url: string } | { none: string }, now: Date): Notice {
  const { context } = packet;
  const latest = latestQuestion(packet, now);
  if (latest.state === 'none' || latest.state === 'draft') throw new Error('A notice is about a question that was asked.');
  const { question, reason, options } = latest.question;
  const { expires_at } = latest.asked;
  const from = line(askerName(packet));
  const asked = block(question, maxQuestion);
  if (event === 'answered' && latest.state === 'answered') {
    const { answer } = latest;
    const parts = [
      {
        title: `Answer from ${line(shownName(answer))}${answer.partial === true ? ' (given on a part of the text)' : ''}`,
        text: block(answer.response, maxPart),
      },
      { title: 'Remarks', text: block(answer.notes ?? '', maxPart) },
    ];
    return {
      heading: `A question from ${from} is answered`,
      subject: line(`Answered: ${question}`),
      question: asked,
      parts: withText(parts),
      hint: '',
    };
  }
  const choices = choicesOf(options).map(({ value, label }) => label ?? value);
  const proposed = choices.slice(0, maxOptions).map(line).join('\n');
  const parts = [
    ...actionParts(latest),
    { title: 'Why a person is asked', text: block(reason, maxPart) },
    { title: 'Proposed answers', text: block(proposed, maxPart) },
    { title: 'Summary', text: block(context.summary, maxPart) },
  ];
  // Pending actions and decisions are never in a message, which only shows a beginning.
  const isCut =
    question.length > maxQuestion ||
    [reason, context.summary, proposed].some((text) => text.length > maxPart) ||
    choices.length > maxOptions ||
    choices.some((choice) => choice.length > maxLine) ||
    packet.actions.pending.length + packet.decisions.length > 0;
  const all = isCut ? ` ${'url' in link ? 'The page' : 'The console'} shows all that the question is about.` : '';
  const left =
    expires_at === null ? 'There is no time limit.' : `Time left: ${roughWords((Date.parse(expires_at) - now.getTime()) / 1000)}.`;
  const isReminder = event === 'reminded';
  return {
    heading: isReminder ? `${from} still waits for an answer` : `${from} asks`,
    subject: line(`${isReminder ? 'Reminder' : 'Question'}: ${question}`),
    question: asked,
    parts: withText(parts),
    ...('url' in link ? { link: link.url } : {}),
    hint: 'url' in link ? `${left} Anyone with the link can answer.${all}` : `${left} ${link.none}${all}`,
  };
}

/** Tool and arguments of an action, as much as fits; the page has all. */
function actionParts({ question: { action }, asked: { edited, step } }: AskedRecord): Notice['parts'] {
  if (action === undefined) return [];
  const text = JSON.stringify(edited?.arguments ?? action.arguments, null, 2);
  const parts = [
    { title: 'Tool', text: line(action.tool) },
    { title: 'Arguments', text: `${block(text, maxPart)}${text.length > maxPart ? '\n(The page has all of them.)' : ''}` },
  ];
  if (!step) return parts;
  return [
    ...parts,
    {
      title: 'Asked',
      text: `${line(step.from.join(', '))}, step ${step.index} of ${step.of}: ${step.given} of ${step.count} have approved`,
    },
  ];
}

const withText = (parts: Notice['parts']) => parts.filter(({ text }) => text !== '');
