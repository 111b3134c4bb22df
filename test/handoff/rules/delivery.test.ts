import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { afterAttempt, currentSecrets, hasFailedTooLong, isRecorded } from '../../../src/handoff/rules/delivery.ts';

const now = new Date('2026-03-01T09:30:00.000Z');
const retrySeconds = [1, 5, 30, 300, 3600, 21_600];
const fresh = { attempts: 0, status: 'pending' as const };
const secondsUntil = (moment: string | null) => (Date.parse(moment!) - now.getTime()) / 1000;

describe('a delivery after an attempt', () => {
  test('Retry-After with 429 or 503 lengthens the delay, up to an hour; an invalid one is ignored [H129]', () => {
    for (const [retryAfter, statusCode, seconds] of [
      ['120', 429, 120],
      ['120', 503, 120],
      ['120', 500, 1],
      ['Sun, 01 Mar 2026 09:32:00 GMT', 429, 120],
      ['Sun, 01 Mar 2026 09:00:00 GMT', 429, 1],
      ['-1', 429, 1],
      ['0', 429, 1],
      ['abc', 429, 1],
      ['1e3', 429, 1],
      ['99999999', 429, 3600],
    ] as const) {
      const state = afterAttempt(fresh, { error: 'http_status', statusCode, retryAfter }, { now, retrySeconds, random: 0 });
      assert.equal(secondsUntil(state.next_retry_at), seconds, `${statusCode} ${retryAfter}`);
      assert.equal(state.due_at, state.next_retry_at);
    }
    // It never shortens a delay.
    const later = afterAttempt(
      { attempts: 3, status: 'failed' },
      { error: 'http_status', statusCode: 429, retryAfter: '2' },
      { now, retrySeconds, random: 0 },
    );
    assert.equal(secondsUntil(later.next_retry_at), 300);
  });

  test('jitter lengthens a delay by at most a tenth [H129]', () => {
    const delays = [0, 0.5, 1].map((random) => {
      const state = afterAttempt(
        { attempts: 4, status: 'failed' },
        { error: 'timeout', statusCode: undefined },
        { now, retrySeconds, random },
      );
      return secondsUntil(state.next_retry_at);
    });
    assert.deepEqual(delays.map(Math.round), [3600, 3780, 3960]);
  });

  test('an attempt of a delivery that was cancelled during it is recorded and changes nothing else', () => {
    const cancelled = { attempts: 1, status: 'cancelled' as const };
    const failed = afterAttempt(cancelled, { error: 'timeout', statusCode: undefined }, { now, retrySeconds, random: 0 });
    assert.deepEqual([failed.status, failed.attempts, failed.due_at, failed.next_retry_at], ['cancelled', 2, null, null]);
    const taken = afterAttempt(cancelled, { error: undefined, statusCode: 200 }, { now, retrySeconds, random: 0 });
    assert.equal(taken.status, 'delivered');
  });
});

test('the outcome of an attempt is recorded unless another has the delivery: it was delivered, or leased again [H128]', () => {
  const none = { attempts: 1, last_error: null, last_status_code: null, next_retry_at: null, delivered_at: null };
  const recorded = (status: 'pending' | 'delivered' | 'cancelled', due_at: string | null, error?: 'timeout') =>
    isRecorded({ ...none, status, due_at }, { error, statusCode: undefined }, now);
  const [own, other] = [now.toISOString(), '2026-03-01T09:31:00.000Z'];
  assert.deepEqual([recorded('pending', own, 'timeout'), recorded('pending', other, 'timeout')], [true, false]);
  assert.deepEqual([recorded('pending', own), recorded('pending', other)], [true, true]);
  assert.deepEqual([recorded('delivered', null), recorded('delivered', null, 'timeout')], [false, false]);
  assert.deepEqual([recorded('cancelled', null), recorded('cancelled', null, 'timeout')], [true, true]);
});

test('a webhook has failed for too long from the limit on, and never if the limit is 0 [H142]', () => {
  const since = '2026-03-01T09:29:00.000Z';
  assert.deepEqual(
    [60, 61, 0].map((seconds) => hasFailedTooLong(since, seconds, now)),
    [true, false, false],
  );
});

test('the old secret signs as well until the overlap ends [H126]', () => {
  const hook = { secret: 'new', old_secret: 'old', old_secret_until: '2026-03-01T09:30:00.001Z' };
  assert.deepEqual(currentSecrets(hook, now), ['new', 'old']);
  assert.deepEqual(currentSecrets({ ...hook, old_secret_until: now.toISOString() }, now), ['new']);
});
