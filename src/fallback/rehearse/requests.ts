import { isObject, readJson } from '../../kit/json.ts';
import { maxRequests } from '../model/request.ts';
import { reducedBody } from '../rules/shapes.ts';
import { RehearsalError, textOf } from './program.ts';

/** The body of a real request without its texts. */
export type RealRequest = Record<string, unknown>;

/**
 * The requests of a file with one in each line, as logs have them: the body itself, or an object with it as `body`, `request` or
 * `request_body`. Texts, images and secrets are dropped while reading; lines with the same shape count once.
 * @throws RehearsalError for a file that can't be read, a line that is no request, and too many shapes
 */
export function readRequests(path: string): RealRequest[] {
  const text = textOf(path);
  const found = new Map<string, RealRequest>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const body = bodyIn(line);
    if (body === undefined) throw new RehearsalError(`Line ${index + 1} of ${path} is no request of a chat model in JSON.`);
    // Whether it streams is a part of the shape; the model that it names is not.
    const { value } = reducedBody(body);
    const request = body.stream === true ? { ...value, stream: true } : value;
    found.set(JSON.stringify(request), request);
  }
  if (found.size === 0) throw new RehearsalError(`${path} has no request.`);
  if (found.size > maxRequests)
    throw new RehearsalError(`${path} has ${found.size} different shapes of requests, and a test takes ${maxRequests}.`);
  return [...found.values()];
}

/** The body of a request in a line. */
function bodyIn(line: string): RealRequest | undefined {
  let value: unknown;
  try {
    value = readJson(line);
  } catch {
    return undefined;
  }
  const wrapped = isObject(value) ? [value, value.body, value.request, value.request_body] : [];
  return wrapped
    .map((one) => (typeof one === 'string' ? objectIn(one) : one))
    .filter(isObject)
    .find(({ messages, input }) => Array.isArray(messages) || typeof input === 'string' || Array.isArray(input));
}

function objectIn(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}
