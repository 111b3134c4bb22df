import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import pino from 'pino';
import Type, { type TSchema } from 'typebox';

import { createApp } from '../../src/kit/http/app.ts';
import { createMount } from '../../src/kit/http/mount.ts';
import { defineRoute, type Route } from '../../src/kit/route.ts';

/** An application without routes, logs and metrics. */
export const quietApp = (parts: Partial<Parameters<typeof createApp>[0]> = {}): FastifyInstance =>
  createApp({
    logger: pino({ level: 'silent' }),
    callerField: 'caller',
    onAnswered: () => undefined,
    onLimited: () => undefined,
    isUnavailable: () => false,
    ...parts,
  });

/** The same, until the test ends. */
export function appFor(t: Pick<TestContext, 'after'>, parts?: Parameters<typeof quietApp>[0]): FastifyInstance {
  const app = quietApp(parts);
  t.after(() => app.close());
  return app;
}

/** What mounts routes on an application. Unless `parts` say otherwise, it admits every request, with a body of up to a KiB. */
export const mountOn = (app: FastifyInstance, parts: Partial<Parameters<typeof createMount<void, Route>>[0]> = {}) =>
  createMount({ app, prefixes: () => [''], admit: () => undefined, admitUnrouted: () => undefined, bodyLimit: () => 1024, ...parts });

/** `POST /things`, which takes a body. */
export const putThing = <Body extends TSchema>(body: Body) =>
  defineRoute({
    id: 'putThing',
    method: 'POST',
    path: '/things',
    tag: 'things',
    access: 'public',
    summary: 'Keep a thing',
    body,
    responses: { 200: { description: 'Kept.', schema: Type.Object({}) } },
  });
