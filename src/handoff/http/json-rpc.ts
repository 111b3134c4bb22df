import type { ServiceError } from '../../kit/errors.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';

/** The codes of JSON-RPC 2.0 (section 5.1), or of the protocol on top of it, for refusals of bodies; of others it is -32600. */
export const refusalCodes = { VALIDATION_ERROR: -32700 } as const;

/** Statuses that are of HTTP rather than of what is asked: their answers have the form of the API, and its headers. */
const statusesOfHttp: ReadonlySet<number> = new Set([401, 429, 500, 503]);

/** Whether a refusal has the form of the API on every endpoint. */
export const isOfHttp = ({ status }: ServiceError): boolean => statusesOfHttp.has(status);

/** A refusal as an error of JSON-RPC 2.0: text that can't be parsed, or a message that is refused. `codes` are the protocol's own. */
export function jsonRpcRefusal(
  refusal: ServiceError,
  isRead: boolean,
  codes: Readonly<Record<string, number>> = refusalCodes,
): HttpResponse<never> | undefined {
  if (isOfHttp(refusal)) return undefined;
  const { status, code, message } = refusal;
  const error = { code: (isRead ? undefined : codes[code]) ?? -32600, message, data: { code } };
  return new HttpResponse<never>({ status, body: new JsonText(JSON.stringify({ jsonrpc: '2.0', id: null, error })) });
}
