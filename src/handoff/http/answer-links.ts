import type { IncomingHttpHeaders } from 'node:http';

import { invalid, ServiceError } from '../../kit/errors.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import { readJson } from '../../kit/json.ts';
import type { Identity } from '../identity/identity.ts';
import { decisions, rememberScopes } from '../model/action.ts';
import { errors } from '../model/errors.ts';
import { formData } from '../model/form-values.ts';
import { choicesOf } from '../model/options.ts';
import type { RespondRequest } from '../model/packet.ts';
import { type AnswerLinkService, type AskingPacket, mayLetStand, type OpenedLink } from '../service/answer-links.ts';
import { answeredPage, type Entered, endPage, leavesOut, questionPage, refusedPage } from './answer-page.ts';
import { AnswerSignIn, ownReferrer, type Reader } from './answer-sign-in.ts';
import { handlersOf } from './handlers.ts';
import { recordAnswer } from './packet-traces.ts';

/** The largest form of an answer, in bytes. */
export const maxFormBytes = 256 * 1024;

const maxNameLength = 1024;
const maxResponseLength = 16_384;

type Open = OpenedLink & { status: 'open' };

/** The handlers of the routes of answer links, and their page. `identity`: who signs in; undefined: nobody. */
export function answerLinkHandlers(links: AnswerLinkService, identity: Identity | undefined) {
  const signedIn = identity && new AnswerSignIn(identity, links);

  /** The person for whom the page of an open link is; undefined: the link asks for no sign-in. Else the page that says what is missing. */
  async function readerOf(
    opened: Open,
    token: string,
    headers: IncomingHttpHeaders,
    missing: 200 | 403,
  ): Promise<Reader | undefined | HttpResponse<string>> {
    if (!opened.asksSignIn) return undefined;
    if (signedIn !== undefined) return signedIn.readerOf(opened, token, headers, missing);
    return refusal('The question is for people who have signed in, and nobody can sign in here.');
  }

  return handlersOf({
    createAnswerLink: ({ params, body }, { caller, origin }) => links.create(caller, params.id, body ?? {}, origin),
    listAnswerLinks: ({ params }, { caller }) => links.list(caller, params.id),
    deleteAnswerLink: ({ params }, { caller }) => links.revoke(caller, params.id),

    showAnswerPage: {
      handle: async ({ params, query }, { headers }) => {
        const opened = await links.open(params.token);
        if (opened.status !== 'open') return ended(opened.status);
        const reader = await readerOf(opened, params.token, headers, 200);
        return reader instanceof HttpResponse ? reader : asking(200, opened, reader, { isWhole: query.whole !== undefined });
      },
      refused: asPage,
    },
    sendAnswer: {
      refused: asPage,
      handle: async ({ params, body }, { headers }) => {
        if (isForeign(headers)) return refusal('The answer was sent by another page. Open the link again and answer there.');
        const opened = await links.open(params.token);
        if (opened.status !== 'open') return ended(opened.status);
        const reader = await readerOf(opened, params.token, headers, 403);
        if (reader instanceof HttpResponse) return reader;
        const form = formOf(body);
        if (reader !== undefined && !signedIn!.isOwnForm(reader, form, headers))
          return refusal('The answer was sent by another page, or for another sign-in. Open the link again and answer there.');
        try {
          const given = answerOf(opened, form, reader?.person.name);
          const end = await links.answer(opened, given, reader?.person);
          if (end === undefined) recordAnswer(opened.packet);
          return end === undefined ? new HttpResponse({ body: answeredPage(shownAnswer(opened.packet, form, given)) }) : ended(end);
        } catch (error) {
          return refused(error, form, reader, () => links.open(params.token));
        }
      },
    },
  });
}

/** The question, for a person who signed in: browsers then have to send where the form comes from. */
const asking = (
  status: number,
  opened: Open,
  reader: Reader | undefined,
  more: { problem?: string; entered?: Entered; isWhole?: boolean } = {},
) =>
  new HttpResponse({
    status,
    headers: reader === undefined ? {} : ownReferrer,
    body: questionPage(opened, {
      ...more,
      mayLetStand: mayLetStand(opened.maker, opened.link, reader?.person),
      ...(reader === undefined ? {} : { reader: { name: reader.person.name, proof: reader.proof } }),
    }),
  });

/** Any other refusal, such as of too many requests, as a page. */
const asPage = ({ status, headers, message }: ServiceError) =>
  new HttpResponse<never>({
    status,
    headers: { ...headers, 'content-type': 'text/html; charset=utf-8' },
    body: new JsonText(refusedPage(message)),
  });

const refusal = (sentence: string) => new HttpResponse({ status: 403, body: refusedPage(sentence) });

function ended(status: Parameters<typeof endPage>[0]) {
  const { httpStatus, page } = endPage(status);
  return new HttpResponse({ status: httpStatus, body: page });
}

/** The question again with what is wrong, or a page that says why the answer is refused. */
async function refused(error: unknown, form: URLSearchParams, reader: Reader | undefined, open: () => Promise<OpenedLink>) {
  if (!(error instanceof ServiceError) || error.status >= 500) throw error;
  const opened = await open();
  if (opened.status !== 'open') return ended(opened.status);
  const askAgain = (status: number, problem: string) =>
    asking(status, opened, reader, { problem, entered: enteredIn(form), isWhole: form.has('whole') });
  if (error.code === 'STALE') return askAgain(409, 'The question, or what it is about, has changed. Read it again before you answer.');
  if (error.code === 'NOT_AN_APPROVER') return refusal(error.message);
  // About the name that was signed in with or typed, not about the link.
  if (error.code === 'FORBIDDEN' && (reader !== undefined || error.field === 'responded_by')) return refusal(error.message);
  if (error.code === 'FORBIDDEN')
    return refusal('This link was made by the agent that asks, and the question excludes its answer. Ask for another link.');
  return askAgain(400, error.message.replace(/^data\.(\S+)/, '$1'));
}

/** Whether the form was sent by a page of another origin. The page sends no referrer, so browsers write `null` as its origin. */
function isForeign({ 'sec-fetch-site': site, origin, host }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && origin !== 'null' && origin.replace(/^https?:\/\//, '') !== host;
}

/** The fields of a form. NUL can't be stored, and line ends are as in other texts. */
function formOf(body: string): URLSearchParams {
  const fields = [...new URLSearchParams(body)];
  const kept = (value: string) => value.replaceAll('\0', '').replaceAll('\r\n', '\n').toWellFormed();
  return new URLSearchParams(fields.map(([name, value]): [string, string] => [name, kept(value)]));
}

const dataPrefix = 'data.';

function enteredIn(form: URLSearchParams): Entered {
  const names = [...form.keys()].filter((name) => name.startsWith(dataPrefix));
  const fields = new Map(names.map((name) => [name.slice(dataPrefix.length), form.getAll(name)]));
  const text = (name: string) => form.get(name) ?? undefined;
  return {
    name: text('name'),
    response: text('response'),
    notes: text('notes'),
    message: text('message'),
    arguments: text('arguments'),
    remember: text('remember'),
    seconds: text('seconds'),
    fields,
  };
}

/** The answer in a form. @throws ServiceError 400 with a sentence for the person */
function answerOf({ link, packet }: Open, form: URLSearchParams, person: string | undefined): RespondRequest {
  const responded_by = person ?? link.responder ?? form.get('name')?.trim() ?? '';
  if (responded_by === '') throw invalid('name', 'Enter your name.');
  if (responded_by.length > maxNameLength) throw invalid('name', `A name has at most ${maxNameLength} characters.`);
  const digest = form.get('digest') ?? '';
  // A form without a digest was not sent by the page.
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new ServiceError(errors.STALE, 'The form has no digest.');
  const notes = form.get('notes')?.trim() ?? '';
  const partial = !form.has('whole') && leavesOut(packet);
  const common = { responded_by, digest, ...(notes === '' ? {} : { notes }), ...(partial ? { partial } : {}) };
  const { schema, action } = packet.hitl;
  if (action !== undefined) return { ...common, ...decisionIn(form) };
  if (schema === undefined || form.has('option')) return { ...common, response: responseOf(packet, form) };
  return { ...common, data: formData(schema, (name) => form.getAll(dataPrefix + name)) };
}

/** The decision in the form of an action. @throws ServiceError 400 with a sentence for the person */
function decisionIn(form: URLSearchParams): Pick<RespondRequest, 'decision' | 'arguments' | 'message' | 'remember'> {
  const decision = decisions.find((word) => word === form.get('decision'));
  if (decision === undefined) throw invalid('decision', 'Choose what to do.');
  const message = form.get('message')?.trim() ?? '';
  const said = message === '' || decision === 'approve' || decision === 'edit' ? {} : { message };
  if (decision === 'respond' && message === '') throw invalid('message', 'Write what to answer the agent.');
  const scope = rememberScopes.find((word) => word === form.get('remember'));
  const stands = decision === 'approve' && scope !== undefined ? { remember: { scope, seconds: secondsIn(form) } } : {};
  return { decision, ...said, ...stands, ...(decision === 'edit' ? { arguments: argumentsIn(form.get('arguments') ?? '') } : {}) };
}

/** How long an approval stands. @throws ServiceError 400 */
function secondsIn(form: URLSearchParams): number {
  const seconds = Number(form.get('seconds'));
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw invalid('seconds', 'Choose how long your approval stands.');
  return seconds;
}

function argumentsIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = readJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The sentence below says what is expected.
  }
  throw invalid('arguments', 'The arguments must be a JSON object.');
}

function responseOf({ hitl }: AskingPacket, form: URLSearchParams): string {
  const option = form.get('option');
  if (option !== null) {
    const chosen = choicesOf(hitl.options)[Number(option)];
    // The options have changed, which the digest tells as well.
    if (chosen === undefined) throw new ServiceError(errors.STALE, 'There is no such option.');
    return chosen.value;
  }
  const response = form.get('response')?.trim() ?? '';
  if (response === '') throw invalid('response', 'Choose an answer, or write one.');
  if (response.length > maxResponseLength) throw invalid('response', `An answer has at most ${maxResponseLength} characters.`);
  return response;
}

function shownAnswer({ hitl }: AskingPacket, form: URLSearchParams, { response, data = {}, decision, message }: RespondRequest): string {
  if (decision !== undefined) return message === undefined ? decision : `${decision}: ${message}`;
  if (response === undefined)
    return Object.entries(data)
      .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : value}`)
      .join('\n');
  return choicesOf(hitl.options)[Number(form.get('option') ?? -1)]?.label ?? response;
}
