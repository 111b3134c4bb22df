import type { FastifyReply, FastifyRequest } from 'fastify';

import { type Limit, LimitReached } from '../errors.ts';
import type { WindowState } from '../window.ts';

/** The result of checking the limits for a request. */
export interface LimitState {
  /** By lower-case name, which spares Fastify the conversion. */
  readonly headers: Record<string, string>;
  /** The refusal, if a limit is reached. */
  readonly refusal: LimitReached | undefined;
  /** Uncounts the request. Called if another limit refuses it, since refused requests do not count. */
  uncount(): void;
}

/** The headers of a window: its limit, the remaining requests, and the seconds until its oldest request leaves it. */
export function limitHeaders(limit: number, { remaining, resetMs }: WindowState): Record<string, string> {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetMs / 1000)),
  };
}

/** A refusal by a window: 429, with the time until a request is allowed again. */
export function tooMany(detail: string, limit: Limit, waitMs: number): LimitReached {
  const seconds = Math.ceil(waitMs / 1000);
  return new LimitReached(`${detail} Try again in ${seconds} seconds.`, limit, seconds);
}

/** Uncounts a request in the limits that allowed it before another one refused it. */
export function uncountRefused({ info }: FastifyRequest, reply: FastifyReply): void {
  const state = info.counted as LimitState | undefined;
  if (state === undefined) return;
  state.uncount();
  const remaining = state.headers['x-ratelimit-remaining'];
  if (remaining !== undefined) reply.header('x-ratelimit-remaining', String(Number(remaining) + 1));
}
