import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

import { HttpResponse } from '../../kit/http/response.ts';
import type { Identity } from '../identity/identity.ts';
import type { AnswerLinkService, OpenedLink } from '../service/answer-links.ts';
import type { Caller } from '../service/authentication.ts';
import { signInPage } from './answer-page.ts';
import { cookieOf, cookiesAt } from './sign-in.ts';

/** A person who signed in, on the page of an answer link. */
export interface Reader {
  readonly person: Caller;
  /** What the form of the page has, which no page of somebody else knows. */
  readonly proof: string;
}

/** With this, browsers name the origin of the page's form, and of nothing else. */
export const ownReferrer = { 'referrer-policy': 'same-origin' };

/** Sign-in on the pages of answer links. */
export class AnswerSignIn {
  readonly #identity: Identity;
  readonly #links: Pick<AnswerLinkService, 'refusalOf'>;
  readonly #origin: string;
  readonly #cookie: string;

  constructor(identity: Identity, links: Pick<AnswerLinkService, 'refusalOf'>) {
    this.#identity = identity;
    this.#links = links;
    this.#origin = new URL(identity.publicUrl).origin;
    this.#cookie = cookiesAt(identity.publicUrl).session;
  }

  /**
   * The person who reads the page of an open link; a page that asks for the sign-in (with the status `missing`), or says that the
   * question is for somebody else.
   * @throws ServiceError 503
   */
  async readerOf(
    opened: OpenedLink & { status: 'open' },
    token: string,
    headers: IncomingHttpHeaders,
    missing: 200 | 403,
  ): Promise<Reader | HttpResponse<string>> {
    const session = cookieOf(headers, this.#cookie);
    const person = session === undefined ? undefined : await this.#identity.sessions.callerOf(session);
    if (session === undefined || person === undefined) return this.#page(missing, token);
    const refusal = await this.#links.refusalOf(opened, person);
    if (refusal !== undefined) return this.#page(403, token, refusal);
    return { person, proof: hash('sha256', `answer form ${session} ${token}`) };
  }

  #page(status: 200 | 403, token: string, refusal?: string): HttpResponse<string> {
    const { publicUrl, providerName } = this.#identity;
    const again = refusal === undefined ? '' : '&prompt=login';
    const href = `${publicUrl}/sign-in?return_to=${encodeURIComponent(`/answer/${token}`)}${again}`;
    return new HttpResponse({ status, body: signInPage(href, providerName, refusal) });
  }

  /** Whether a form was sent by the page that this person was shown. */
  isOwnForm({ proof }: Reader, form: URLSearchParams, { origin }: IncomingHttpHeaders): boolean {
    const given = form.get('proof') ?? '';
    return origin === this.#origin && given.length === proof.length && timingSafeEqual(Buffer.from(given), Buffer.from(proof));
  }
}
