import { oneOf, text } from './settings.ts';

/** The settings of logs, which both services have. */
export const logSettings = {
  logLevel: oneOf({ variable: 'SERVICE_LOG_LEVEL', fallback: 'info', help: 'The lowest level that is logged.' }, [
    'trace',
    'debug',
    'info',
    'warn',
    'error',
    'fatal',
    'silent',
  ]),
  logFormat: oneOf(
    {
      variable: 'SERVICE_LOG_FORMAT',
      fallback: undefined,
      help: 'The format of log lines; by default `pretty` on a terminal and `json` elsewhere.',
    },
    ['pretty', 'json'],
  ),
};

/** The bearer token of `/metrics`. `effect` completes the sentence "If set, `/metrics` requires it as a bearer token". */
export const metricsToken = (effect: string) =>
  text(
    { variable: 'SERVICE_METRICS_TOKEN', fallback: undefined, help: `If set, \`/metrics\` requires it as a bearer token${effect}.` },
    (token) => (/^[\x21-\x7e]+$/.test(token) ? undefined : 'visible ASCII characters without spaces'),
  );
