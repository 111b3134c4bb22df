import pino from 'pino';

import { createApp } from '../../src/kit/http/app.ts';

/** An application without routes, logs and metrics. */
export const quietApp = (parts: Partial<Parameters<typeof createApp>[0]> = {}): ReturnType<typeof createApp> =>
  createApp({
    logger: pino({ level: 'silent' }),
    onAnswered: () => undefined,
    onLimited: () => undefined,
    isUnavailable: () => false,
    ...parts,
  });
