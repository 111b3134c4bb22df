import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import { ServiceError, tooManyPending } from '../../kit/errors.ts';
import { discardBody, readBody } from '../../kit/http/body.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import { MemoryBudget } from '../../kit/memory-budget.ts';
import { errors } from '../model/errors.ts';
import type { RehearsalToken } from '../model/rehearsal.ts';
import { type FakeExchange, type FakeRequest, maxFakeCalls, type Rehearsal, type Rehearsals } from '../service/rehearsal.ts';
import { fakeBase, type RehearsalTokens } from '../service/rehearsal-tokens.ts';
import { handlersOf } from './handlers.ts';

/** The largest body of a call of a fake provider, in bytes. */
const maxBodyBytes = 1024 * 1024;

/** How long a client has to read what was sent before the connection breaks, in milliseconds. */
const readMs = 150;

/** The paths of the fake providers. Their token is their key. */
const fakePrefix = '/rehearsal/';

/** Whether a request is for a fake provider. */
export const isFakeCall = (request: FastifyRequest): boolean => request.url.startsWith(fakePrefix);

interface RehearsalHandlersDependencies {
  tokens: RehearsalTokens;
  /** The origin at which gateways reach the service; undefined for that of each request. */
  publicUrl: string | undefined;
}

/** The handlers of the routes of rehearsal tokens. */
export function rehearsalTokenHandlers({ tokens, publicUrl }: RehearsalHandlersDependencies) {
  const shown = (token: string, origin: string): RehearsalToken => ({ token, base: fakeBase(publicUrl ?? origin, token) });
  return handlersOf({
    getRehearsalToken: async ({ params }, { origin }) => shown(await tokens.of(params.id), origin),
    renewRehearsalToken: async ({ params }, { origin }) => {
      const body = shown(await tokens.renew(params.id), origin);
      return new HttpResponse<RehearsalToken>({ status: 201, body });
    },
  });
}

/** Mounts the fake providers. They have no part in the API description, since only gateways call them. */
export function mountFakeProviders(app: FastifyInstance, rehearsals: Rehearsals): void {
  const budget = new MemoryBudget(4 * maxFakeCalls * maxBodyBytes);
  app.route({
    method: ['GET', 'POST'],
    url: `${fakePrefix}:token/:provider/*`,
    exposeHeadRoute: false,
    onRequest(request, reply, done) {
      request.info.route = `${fakePrefix}:token/:provider/*`;
      const { token, provider, '*': path } = request.params as Record<'token' | 'provider' | '*', string>;
      const rehearsal = rehearsals.find(token);
      if (rehearsal === undefined) {
        done(new ServiceError(errors.REHEARSAL_NOT_RUNNING, 'No rehearsal of this chain runs. Start one; then its fake providers answer.'));
        return;
      }
      const leave = rehearsal.reserveCall();
      if (leave === undefined) {
        done(tooManyPending('calls of fake providers'));
        return;
      }
      const { raw } = request;
      const tooLarge = (limit: number) => `The body is larger than the limit of ${limit} bytes.`;
      const announced = Number(request.headers['content-length']);
      readBody(raw, { limit: maxBodyBytes, tooLarge, announced, budget, owner: token }, (error, bytes, held) => {
        budget.release(token, held);
        if (error !== null) {
          leave();
          discardBody(raw);
          done(error);
        } else answer(reply, rehearsal, { provider, path, body: bytes?.toString() ?? '' }, leave);
      });
    },
    // `onRequest` answers.
    handler: () => undefined,
  });
}

/** Answers a call as its fake provider. `leave` is called when the exchange is over. */
function answer(reply: FastifyReply, rehearsal: Rehearsal, call: FakeRequest, leave: () => void): void {
  reply.hijack();
  const response = reply.raw;
  const { reaction, latencyMs, done } = rehearsal.answerCall(call, () => {
    response.destroy();
  });
  const timers: NodeJS.Timeout[] = [];
  const later = (act: () => void, ms: number) => {
    timers.push(setTimeout(act, ms));
  };
  response.once('close', () => {
    for (const timer of timers) clearTimeout(timer);
    done();
    leave();
  });
  if (latencyMs > 0) later(() => react(response, reaction, later), latencyMs);
  else react(response, reaction, later);
}

function react(response: ServerResponse, reaction: FakeExchange['reaction'], later: (act: () => void, ms: number) => void): void {
  if (reaction === 'silence') return;
  if (reaction === 'broken') {
    response.socket?.resetAndDestroy();
    return;
  }
  const { status, body, later: rest, then } = reaction;
  // Clients may repeat a call by themselves if a connection breaks that they have used before, and not if it is a new one.
  const headers = { ...reaction.headers, connection: 'close' };
  if (rest !== undefined) {
    response.writeHead(status, headers);
    response.write(body);
    later(() => response.end(rest.body), rest.afterMs);
    return;
  }
  if (then === 'end') {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
    return;
  }
  response.writeHead(status, headers);
  if (then === 'silence') response.write(body);
  // Clients throw what they have not read away when the connection breaks.
  else response.write(body, () => later(() => response.destroy(), readMs));
}
