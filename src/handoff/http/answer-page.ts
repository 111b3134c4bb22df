import { hash } from 'node:crypto';
import { beginningOf } from '../../kit/wording.ts';

import { askerName } from '../model/asker.ts';
import { onlyVerified, takesOnlyVerified } from '../model/offered.ts';
import { choicesOf } from '../model/options.ts';
import { escapeHtml } from '../rules/html.ts';
import { isQuick, type MarkdownElement, type MarkdownNode, markdownOf } from '../rules/markdown.ts';
import { roughWords } from '../rules/time-left.ts';
import type { AskingPacket, OpenedLink } from '../service/answer-links.ts';
import { actionOf, decisionFields, type EnteredDecision } from './action-parts.ts';
import { formField } from './form-field.ts';

/** The styles of the page. The look is that of the console, without its files. */
const styles = `
:root{color-scheme:light dark;--canvas:light-dark(#f7f7f8,#0e0f12);--surface:light-dark(#fff,#15171b);--line:light-dark(#e3e4e8,#272a31);--line-strong:light-dark(#85899a,#6c7180);--text:light-dark(#17181c,#e9eaee);--muted:light-dark(#5b5f6b,#9ba0ad);--accent:light-dark(#4450c8,#5563e0);--focus:light-dark(#4450c8,#8e9bff);--bad:light-dark(#bf2c34,#ff8087);--bad-fill:light-dark(#bf2c34,#c73a42);--bad-surface:light-dark(#fdecec,#331a1c)}
*{box-sizing:border-box}
body{margin:0;background:var(--canvas);color:var(--text);font:1rem/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;overflow-wrap:anywhere}
main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem}
main.question{max-width:80rem}
article,.card{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:1.25rem}
main.question>article{display:grid;grid-template-columns:minmax(0,1fr);gap:1rem;padding:0;border:0;background:none}
.card>:last-child,.card>section:last-child>:last-child{margin-bottom:0}
.card>section:first-child>h2{margin-top:0}
.about{max-height:18rem;overflow:auto;background:linear-gradient(var(--surface) 33%,transparent) top/100% 2.5rem no-repeat local,linear-gradient(transparent,var(--surface) 66%) bottom/100% 2.5rem no-repeat local,linear-gradient(var(--line),transparent) top/100% .5rem no-repeat,linear-gradient(transparent,var(--line)) bottom/100% .5rem no-repeat,var(--surface)}
@media(min-width:60rem){main.question>article{grid-template-columns:minmax(0,1fr) minmax(0,1fr);grid-template-rows:auto 1fr;align-items:start}.about{grid-column:2;grid-row:1/3;max-height:none}.messages{grid-column:1/3}}
h1{font-size:1.375rem;line-height:1.3;margin:0 0 .75rem;white-space:pre-wrap}
h2{font-size:.9375rem;margin:1.75rem 0 .5rem}
p{margin:0 0 .75rem}
.muted,footer,dt,label small{color:var(--muted);font-size:.875rem}
.text{white-space:pre-wrap;unicode-bidi:isolate}
.problem{background:var(--bad-surface);border-left:3px solid var(--bad);padding:.625rem .75rem;border-radius:4px}
label{display:block;margin-bottom:1rem;font-weight:500}
label small{display:block;font-weight:400}
fieldset{border:0;margin:0 0 1rem;padding:0}legend{padding:0;font-weight:500}label.check{margin:.25rem 0 0;font-weight:400}label.check input{display:inline;width:auto;margin:0 .5rem 0 0}
input,textarea,select{display:block;width:100%;margin-top:.25rem;padding:.5rem .625rem;font:inherit;color:inherit;background:var(--canvas);border:1px solid var(--line-strong);border-radius:6px}
textarea{min-height:5rem;resize:vertical}
button,summary.button,a.button{font:inherit;font-weight:600;min-height:2.75rem;padding:.5rem 1.125rem;border-radius:6px;border:1px solid var(--accent);background:var(--accent);color:#fff;cursor:pointer;text-align:start}
button.danger{border-color:var(--bad-fill);background:var(--bad-fill)}
a.button{display:inline-block;text-decoration:none}
summary.button.danger{border-color:var(--bad);background:none;color:var(--bad)}
button.plain{background:none;color:var(--text);border-color:var(--line-strong)}
button.plain:hover{border-color:var(--focus)}
.options{display:flex;flex-wrap:wrap;gap:.625rem;align-items:flex-start;margin-bottom:1.25rem}
details{margin-bottom:1rem}
.options details{margin:0}
summary{cursor:pointer}
summary.button{display:inline-flex;align-items:center;list-style:none}
summary.button::-webkit-details-marker{display:none}
details[open]>summary.button{opacity:.65;margin-bottom:.5rem}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
ul,ol{margin:0;padding-left:1.25rem}
h3,th{font-size:1rem;text-align:start;margin:.75rem 0 .25rem}
pre{white-space:pre-wrap;margin:0 0 .75rem;padding:.5rem;background:var(--canvas);border-radius:6px}
blockquote{margin:0 0 .75rem;padding-left:.75rem;border-left:3px solid var(--line)}
a{color:var(--focus)}
.table{overflow-x:auto}
table{border-collapse:collapse;margin-bottom:.75rem}
th,td{border:1px solid var(--line);padding:.25rem .5rem}
.markdown p,.markdown li{white-space:pre-line}
.markdown>:last-child{margin-bottom:0}
li{margin-bottom:.5rem}
dl{margin:0}
dd{margin:0 0 1rem;max-width:80ch}
footer{margin-top:1rem}
[hidden]{display:none}
`;

/** Adds the reader's own time to each time of the page, which is in UTC. Nothing else of the page needs a script. */
const localTimes = `for(const time of document.querySelectorAll('time')){const own=new Date(time.dateTime).toLocaleString('en-GB',{day:'numeric',month:'long',hour:'2-digit',minute:'2-digit',timeZoneName:'short'});if(!own.endsWith('UTC'))time.textContent=own+' ('+time.textContent+')'}`;

/** The headers of every answer below `/answer`. */
export const answerPageHeaders = {
  'content-security-policy': `default-src 'none'; img-src data:; style-src 'sha256-${hash('sha256', styles, 'base64')}'; script-src 'sha256-${hash('sha256', localTimes, 'base64')}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const textBlock = (text: string, tag = 'p') => `<${tag} class="text" dir="auto">${escapeHtml(text)}</${tag}>`;

function documentOf(title: string, content: string, more = { of: '', end: '' }): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><link rel="icon" href="data:,"><style>${styles}</style></head>
<body><main${more.of}>${content}</main>${more.end}</body>
</html>
`;
}

/** A page with a heading and a paragraph. */
const notice = (heading: string, sentence: string): string =>
  documentOf(heading, `<article><h1>${heading}</h1><p>${sentence}</p></article>`);

const answered = {
  httpStatus: 410,
  page: notice(
    'This question has been answered',
    'Nothing else is needed. If the answer has to be changed, ask the person who sent you the link.',
  ),
} as const;

const ends: Record<Exclude<OpenedLink['status'], 'open'>, { httpStatus: 404 | 410; page: string }> = {
  answered,
  closed: answered,
  revoked: {
    httpStatus: 410,
    page: notice('This link was revoked', 'It no longer takes an answer. Ask the person who sent it for a new one.'),
  },
  expired: {
    httpStatus: 410,
    page: notice('This link has expired', 'The question is overdue, or was withdrawn. Ask the person who sent the link for a new one.'),
  },
  unknown: {
    httpStatus: 404,
    page: notice('There is no such link', 'Check that the whole address was copied. Links are removed some time after they have ended.'),
  },
};

/** The page for a link that can't be used, and its HTTP status. */
export const endPage = (status: keyof typeof ends) => ends[status];

/** The page after an answer. */
export const answeredPage = (response: string): string =>
  documentOf(
    'Your answer is recorded',
    `<article><h1>Your answer is recorded</h1>${textBlock(response)}<p class="muted">You can close this page. The link takes no further answer.</p></article>`,
  );

/** The page for a form that may not be sent. */
export const refusedPage = (sentence: string): string => notice('The answer was not accepted', escapeHtml(sentence));

/** The page that asks for a sign-in before it shows the question, or says why the person who has signed in does not see it. */
export const signInPage = (href: string, provider: string, refusal: string | undefined): string =>
  documentOf(
    refusal === undefined ? 'Sign in to see the question' : 'The question is for somebody else',
    `<article><h1>${refusal === undefined ? 'Sign in to see the question' : 'The question is for somebody else'}</h1><p>${escapeHtml(refusal ?? 'The question is shown to the person whom it is for.')}</p><p><a class="button" href="${escapeHtml(href)}">${refusal === undefined ? `Sign in with ${escapeHtml(provider)}` : 'Sign in as somebody else'}</a></p></article>`,
  );

/** A person who signed in, as the page has it. */
interface ShownReader {
  readonly name: string;
  readonly proof: string;
}

/** What a person entered, to be shown again. */
export interface Entered extends EnteredDecision {
  readonly name?: string | undefined;
  readonly response?: string | undefined;
  readonly notes?: string | undefined;
  /** The texts of the fields of the question's form. */
  readonly fields?: ReadonlyMap<string, readonly string[]>;
}

/** How many of the last messages the page shows. */
const shownTurns = 8;

/** How much a page shows at first: of the summary, the question and its reason; of each of many texts; and how many of each list. */
const beginning = { text: 20_000, item: 4000, items: 100 } as const;
const whole = { text: Number.POSITIVE_INFINITY, item: Number.POSITIVE_INFINITY, items: Number.POSITIVE_INFINITY } as const;
type Bounds = typeof beginning | typeof whole;

const inNumbers = new Intl.NumberFormat('en-US');

/** Cuts what a page shows to its bounds, and knows whether anything was left out. */
class Extract {
  readonly bounds: Bounds;
  isCut = false;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  /** The beginning of a text, and a sentence that says how much is left out. */
  cut(text: string, length: number): { readonly start: string; readonly rest: string } {
    if (text.length <= length) return { start: text, rest: '' };
    return { start: `${beginningOf(text, length)}…`, rest: this.leftOut(text.length - length, 'character') };
  }

  /** A sentence that says how many of something are left out. */
  leftOut(count: number, what: string): string {
    if (!(count > 0)) return '';
    this.isCut = true;
    return `<p class="muted">${inNumbers.format(count)} more ${what}${count === 1 ? ' is' : 's are'} not shown here.</p>`;
  }
}

/** The parts of the page that show texts of the packet. */
function partsOf(packet: AskingPacket, extract: Extract) {
  const { hitl } = packet;
  const isWhole = extract.bounds === whole;
  const question = extract.cut(hitl.question, extract.bounds.text);
  const reason = hitl.reason === '' ? '' : shown(hitl.reason, extract);
  const [about, messages] = isWhole
    ? [aboutOf(packet, extract), messagesOf(packet, extract)]
    : [beginningOfAbout(packet, extract), beginningOfMessages(packet, extract)];
  extract.leftOut(choicesOf(hitl.options).length - extract.bounds.items, 'option');
  return { question, reason, about, messages };
}

/** Whether the page of a packet leaves out text of it until a person opens the rest. */
export function leavesOut(packet: AskingPacket): boolean {
  const extract = new Extract(beginning);
  partsOf(packet, extract);
  return extract.isCut;
}

const restIsLeftOut = `<p class="problem">Part of the text is not shown here. <a href="?whole=1">Show all of it</a> before you answer; an answer without it is recorded as given on a part of the text.</p>`;

const nameIsTyped = `<p class="problem">${onlyVerified} This link is none of these, so an answer by it will be refused. Ask the person who sent it for another one.</p>`;

type OpenLink = OpenedLink & { status: 'open' };

interface QuestionPageOptions {
  readonly problem?: string;
  readonly entered?: Entered;
  readonly reader?: ShownReader;
  readonly isWhole?: boolean;
  /** Whether an approval by the link may stand for later, if the question allows that. */
  readonly mayLetStand?: boolean;
}

/** The page that asks the question of an open link: the beginning of long texts, or all of them. */
export function questionPage(
  { link, packet, digest, readAt }: OpenLink,
  { problem, entered = {}, reader, isWhole = false, mayLetStand = false }: QuestionPageOptions = {},
): string {
  const { hitl } = packet;
  const extract = new Extract(isWhole ? whole : beginning);
  const { question, reason, about, messages } = partsOf(packet, extract);
  const asked = `<p class="muted"><bdi>${escapeHtml(askerName(packet))}</bdi> asks${link.responder === null ? '' : ` <bdi>${escapeHtml(link.responder)}</bdi>`}. ${until(link.expires_at, hitl.expires_at, readAt)}</p>`;
  const warning = problem === undefined ? '' : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`;
  const seen = `<input type="hidden" name="digest" value="${digest}">${isWhole ? '<input type="hidden" name="whole" value="1">' : ''}`;
  // What the page leaves out is said beside the buttons, and an answer by any of them is marked.
  const fields = answerFields(packet, entered, extract, mayLetStand);
  const form = `<form class="card" method="post" action="?" autocomplete="off"><button type="submit" disabled hidden></button>${seen}${reader === undefined ? nameField(link, entered) : readerFields(reader)}${reader === undefined && link.verified !== 1 && takesOnlyVerified(hitl) ? nameIsTyped : ''}${extract.isCut ? restIsLeftOut : ''}${fields}</form>`;
  return documentOf(
    beginningOf(hitl.question, 100),
    `<article><div class="card">${warning}${asked}<h1 dir="auto">${escapeHtml(question.start)}</h1>${question.rest}${reason}${actionOf(packet)}</div>${about}${form}${messages}</article><footer>This page answers this one question and shows nothing else. Packet ${packet.id}.</footer>`,
    { of: ' class="question"', end: `<script>${localTimes}</script>` },
  );
}

const utc = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });

/** When the link or the question ends, whichever is first, in words that need no script. */
function until(linkEnd: string, questionEnd: string | null, now: Date): string {
  const end = questionEnd !== null && questionEnd < linkEnd ? questionEnd : linkEnd;
  const left = roughWords((Date.parse(end) - now.getTime()) / 1000);
  return `Answer within ${left}, by <time datetime="${end}">${utc.format(new Date(end))} UTC</time>.`;
}

const readerFields = ({ name, proof }: ShownReader): string =>
  `<input type="hidden" name="proof" value="${proof}"><p class="muted">You answer as <bdi>${escapeHtml(name)}</bdi>.</p>`;

function nameField({ responder }: OpenLink['link'], { name = '' }: Entered): string {
  if (responder !== null) return '';
  return `<label>Your name<input name="name" required maxlength="1024" value="${escapeHtml(name)}"></label>`;
}

function answerFields(packet: AskingPacket, entered: Entered, extract: Extract, mayLetStand: boolean): string {
  const { hitl } = packet;
  const { response = '', notes = '', fields = new Map() } = entered;
  const remarks = `<details${notes === '' ? '' : ' open'}><summary>Add a remark</summary><label>Remark<textarea name="notes">${escapeHtml(notes)}</textarea></label></details>`;
  if (hitl.action !== undefined) return `${decisionFields(packet, entered, mayLetStand)}${remarks}`;
  if (hitl.schema !== undefined) {
    const { properties, required = [] } = hitl.schema;
    const rows = Object.entries(properties).map(([name, field]) => formField(name, field, required.includes(name), fields.get(name)));
    return `${rows.join('')}${remarks}<div class="options"><button type="submit" name="own" value="1">Send</button>${optionButtons(hitl, extract)}</div>`;
  }
  const choices = choicesOf(hitl.options);
  const own = `<label>${choices.length === 0 ? 'Your answer' : 'Another answer'}<textarea name="response" maxlength="16384">${escapeHtml(response)}</textarea></label>`;
  const send = `<button type="submit" name="own" value="1"${choices.length === 0 ? '' : ' class="plain"'}>Send this answer</button>`;
  if (choices.length === 0) return `${own}${remarks}${send}`;
  const more = extract.leftOut(choices.length - extract.bounds.items, 'option');
  const free =
    hitl.strict_options === true && more === ''
      ? ''
      : `<details${response === '' ? '' : ' open'}><summary>Answer in your own words</summary>${own}${send}</details>`;
  return `${remarks}<div class="options">${optionButtons(hitl, extract)}</div>${more}${free}`;
}

/** The buttons of the options. Beside a form they decline it, so that its fields may be empty. */
function optionButtons({ options, schema }: AskingPacket['hitl'], { bounds }: Extract): string {
  const kept = schema === undefined ? '' : ' formnovalidate';
  const buttons = choicesOf(options)
    .slice(0, bounds.items)
    .map(({ label, isDangerous }, index) => {
      const button = (text: string, kind: string) =>
        `<button type="submit" name="option" value="${index}"${kind}${kept} dir="auto">${escapeHtml(text)}</button>`;
      if (!isDangerous) return button(label, ' class="plain"');
      return `<details><summary class="button danger" dir="auto">${escapeHtml(label)}</summary>${button(`Confirm: ${label}`, ' class="danger"')}</details>`;
    });
  return buttons.join('');
}

/** A function that draws the beginning of a part of the page once for each revision of a packet that is kept. */
function once(draw: (packet: AskingPacket, extract: Extract) => string): (packet: AskingPacket, extract: Extract) => string {
  const drawn = new WeakMap<AskingPacket, { readonly html: string; readonly isCut: boolean }>();
  return (packet, extract) => {
    const known = drawn.get(packet);
    if (known !== undefined) {
      extract.isCut ||= known.isCut;
      return known.html;
    }
    const own = new Extract(extract.bounds);
    const html = draw(packet, own);
    drawn.set(packet, { html, isCut: own.isCut });
    extract.isCut ||= own.isCut;
    return html;
  };
}

const section = (heading: string, body: string) => `<section><h2>${heading}</h2>${body}</section>`;
const list = (items: readonly string[]) => `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`;

/** What the question is about: all of it is in the digest. */
function aboutOf({ context, actions, decisions }: AskingPacket, extract: Extract): string {
  const { items, text } = extract.bounds;
  const pending = actions.pending
    .slice(0, items)
    .map(
      ({ description, assignee, priority }) =>
        `${shown(description, extract, 'span')}<br><span class="muted">${[assignee, priority ?? ''].filter(Boolean).map(escapeHtml).join(', ')}</span>`,
    );
  const decided = decisions.slice(0, items).map(({ decision, rationale, decided_by = '', alternatives = [] }) => {
    const others = alternatives.length === 0 ? '' : `Also considered: ${alternatives.map(textOf).join('; ')}`;
    const notes = [[rationale, decided_by].filter(Boolean).join(' – '), others].filter(Boolean).join('\n');
    const { start, rest } = extract.cut(notes, extract.bounds.item);
    return `${shown(decision, extract, 'span')}<br><span class="muted text" dir="auto">${escapeHtml(start)}</span>${rest}`;
  });
  const parts = [
    section('Summary', prose(context.summary, extract, text)),
    pending.length === 0 ? '' : section('To be done', list(pending) + extract.leftOut(actions.pending.length - items, 'action')),
    decided.length === 0 ? '' : section('Decided so far', list(decided) + extract.leftOut(decisions.length - items, 'decision')),
  ];
  // It scrolls in a narrow window, so that the answer stays in sight, and must then be reachable by keyboard (WCAG 2.1.1).
  return `<div class="card about" role="region" aria-label="What the question is about" tabindex="0">${parts.join('')}</div>`;
}
const beginningOfAbout = once(aboutOf);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The last messages. */
function messagesOf({ context }: AskingPacket, extract: Extract): string {
  const turns = context.conversation_state.slice(-shownTurns);
  const messages = turns.map(
    ({ role, content }) => `<dt><bdi>${escapeHtml(role)}</bdi></dt><dd dir="auto">${messageOf(content, extract)}</dd>`,
  );
  return messages.length === 0 ? '' : `<div class="card messages">${section('Last messages', `<dl>${messages.join('')}</dl>`)}</div>`;
}
const beginningOfMessages = once(messagesOf);

/** A message. What looks like data that programs exchange is folded away, as in the console. */
const messageOf = (content: string, extract: Extract) =>
  /^\s*[[{]/.test(content) && /[\]}]\s*$/.test(content.slice(-100))
    ? `<details><summary class="muted">Data, ${inNumbers.format(content.length)} characters</summary>${shown(content, extract, 'span')}</details>`
    : prose(content, extract, extract.bounds.item);

/** A text of others: as Markdown if that is quick, else as it is. */
function prose(text: string, extract: Extract, length: number): string {
  const { start, rest } = extract.cut(text, length);
  return (isQuick(start) ? `<div class="markdown" dir="auto">${htmlOf(markdownOf(start))}</div>` : textBlock(start)) + rest;
}

/** A text of others as it is: an element of many, or the only one. */
function shown(text: string, extract: Extract, tag: 'p' | 'span' = 'p'): string {
  const { start, rest } = extract.cut(text, tag === 'p' ? extract.bounds.text : extract.bounds.item);
  return textBlock(start, tag) + rest;
}

const htmlOf = (nodes: readonly MarkdownNode[]): string =>
  nodes.map((node) => (typeof node === 'string' ? escapeHtml(node) : elementHtml(node))).join('');

/** An element as HTML: its tag is one of ours, and all texts are escaped. */
function elementHtml({ tag, children, href, start }: MarkdownElement): string {
  if (tag === 'br' || tag === 'hr') return `<${tag}>`;
  const attributes = [
    href === undefined ? '' : ` href="${escapeHtml(href)}" target="_blank" rel="noopener noreferrer nofollow"`,
    start === undefined ? '' : ` start="${start}"`,
    tag === 'th' ? ' scope="col"' : '',
  ].join('');
  const html = `<${tag}${attributes}>${htmlOf(children)}</${tag}>`;
  return tag === 'table' ? `<div class="table" role="region" aria-label="Table" tabindex="0">${html}</div>` : html;
}
