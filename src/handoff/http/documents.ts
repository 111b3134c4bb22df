import type { IncomingHttpHeaders } from 'node:http';
import { entityTagOf } from '../../kit/etag.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { Preconditions } from '../service/documents.ts';

/** The preconditions in the headers of a request. */
export const preconditionsIn = (headers: IncomingHttpHeaders): Preconditions => ({
  ifMatch: headers['if-match'],
  ifNoneMatch: headers['if-none-match'],
});

/** The answer with a document and its entity tag: 201 for a new one. */
export const documentAnswer = <T extends { readonly version: number }>(body: T, isNew = false) =>
  new HttpResponse({ status: isNew ? 201 : 200, body, headers: { etag: entityTagOf(body.version) } });
