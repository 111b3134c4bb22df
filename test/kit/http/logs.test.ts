import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pino from 'pino';

import { readable } from '../../../src/kit/http/logs.ts';

const time = Date.parse('2026-03-01T09:30:00.123Z');

/** The readable output of a logger. */
function written(write: (logger: pino.Logger) => void): string {
  let text = '';
  const logger = pino(
    { base: { service: 'handoff' }, timestamp: () => `,"time":${time}` },
    {
      write(line) {
        text += readable(line);
      },
    },
  );
  write(logger);
  return text;
}

describe('A log line for a person', () => {
  test('has a request on one line: time, service, method, route, status, milliseconds and other fields', () => {
    const request = { request_id: '2s-1', tenant_id: 'T', method: 'GET', route: '/api/v1/packets/:id', status: 200, ms: 1.25 };
    assert.equal(
      written((logger) => logger.info(request, 'request')),
      '09:30:00.123Z handoff GET /api/v1/packets/:id 200 1.25 ms request_id=2s-1 tenant_id=T\n',
    );
  });

  test('has level and message for anything else', () => {
    assert.equal(
      written((logger) => logger.warn({ job: 'sweep', rows: { a: 1 } }, 'a job is late')),
      '09:30:00.123Z handoff WARN a job is late job=sweep rows={"a":1}\n',
    );
  });

  test('has the stack of an error below it, indented', () => {
    const text = written((logger) =>
      logger.error({ err: { message: 'It broke.', stack: 'Error: It broke.\n    at one\n    at two' } }, 'failed'),
    );
    assert.equal(text, '09:30:00.123Z handoff ERROR failed\n    Error: It broke.\n    at one\n    at two\n');
    assert.match(
      written((logger) => logger.error({ err: { message: 'It broke.' } }, 'failed')),
      /failed\n {4}It broke\.\n$/,
    );
  });

  test("is one line for any values, and can't move the cursor", () => {
    const text = written((logger) => logger.info({ route: 'a\nb\u001b[2J', status: 400 }, 'request'));
    assert.equal(text, '09:30:00.123Z handoff - "a\\nb\\u001b[2J" 400\n');
  });
});
