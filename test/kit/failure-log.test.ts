import assert from 'node:assert/strict';
import { test } from 'node:test';

import { unavailable } from '../../src/kit/errors.ts';
import { FailureLog } from '../../src/kit/failure-log.ts';

test('An outage of the database is a line at its beginning, one each minute with the count of failures, and one at its end', () => {
  const lines: { level: string; message: string; [field: string]: unknown }[] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, ...fields });
  let now = 0;
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const log = new FailureLog({
    logger: { error: at('error'), info: at('info') },
    clock: () => new Date(now),
    isUnavailable: (error) => error === away,
  });
  log.succeeded('sweep');
  for (; now < 125_000; now += 1000) {
    for (const job of ['sweep', 'index', 'poll']) log.failed(job, job === 'sweep' ? unavailable(away) : away);
    log.succeeded('heartbeat');
  }
  log.succeeded('sweep');
  log.succeeded('index');
  const err = { type: 'Error', message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' };
  assert.deepEqual(lines, [
    { level: 'error', message: 'database unavailable', job: 'sweep', err },
    { level: 'error', message: 'database still unavailable', seconds: 60, failures: 181, err },
    { level: 'error', message: 'database still unavailable', seconds: 120, failures: 361, err },
    { level: 'info', message: 'database available again', seconds: 125, failures: 375 },
  ]);
  log.failed('index', new Error('unforeseen'));
  const { job, message, err: cause } = lines.at(-1)!;
  assert.deepEqual([job, message], ['index', 'job failed']);
  assert.match((cause as unknown as { stack: string }).stack, /\n +at /);
});
