import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isDate, isDateTime } from '../../src/kit/dates.ts';
import { bodyValidator } from '../../src/kit/http/validate.ts';
import { givenTimestamp, object } from '../../src/kit/schemas.ts';

test('A date is a day of the calendar, and a date-time one of RFC 3339 on such a day', () => {
  for (const day of ['2026-02-28', '2024-02-29', '2026-12-31']) assert.ok(isDate(day) && isDateTime(`${day}T10:00:00.5+01:00`), day);
  for (const day of ['2026-02-30', '2025-02-29', '2026-13-01', '2026-1-1', ' 2026-01-01'])
    assert.ok(!isDate(day) && !isDateTime(`${day}T10:00:00Z`), day);
  for (const time of [
    '2026-03-01T10:00Z',
    '2026-03-01 10:00:00Z',
    '2026-03-01T10:00:00+00',
    '2026-03-01T10:00:00,5Z',
    '2026-03-01T25:00:00Z',
  ])
    assert.ok(!isDateTime(time), time);
  assert.ok(isDateTime('2026-03-01t10:00:00z'));
});

test('A time that would be read as another one, or by some readers only, is refused with a sentence', () => {
  const check = bodyValidator(object({ at: givenTimestamp('When.') }));
  for (const at of ['2026-03-01T10:00:00+00', '2026-03-01t10:00:00z', '2026-03-01T10:00:00,5Z', '2026-02-30T10:00:00Z', '2026-02-30'])
    assert.throws(() => check({ at }), { message: 'at must be an ISO 8601 date or date-time.' }, at);
});
