import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpSpanEnd, parseTraceparent, traceparentOf } from '../../src/kit/trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

test('a valid traceparent names its trace and span, and is written as version 00', () => {
  const cases: [header: string, isSampled: boolean][] = [
    [`00-${traceId}-${spanId}-01`, true],
    [`00-${traceId}-${spanId}-00`, false],
    // Flags that are not defined are ignored.
    [`00-${traceId}-${spanId}-03`, true],
    [`00-${traceId}-${spanId}-fe`, false],
    // A later version is read as far as it is known.
    [`01-${traceId}-${spanId}-01`, true],
    [`cc-${traceId}-${spanId}-01-what-the-future-will-be-like`, true],
  ];
  for (const [header, isSampled] of cases) {
    const trace = parseTraceparent(header);
    assert.deepEqual(trace, { traceId, spanId, isSampled }, header);
    assert.equal(traceparentOf(trace!), `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`);
  }
});

test('a traceparent that is not valid is treated like none', () => {
  const invalid = [
    '',
    'traceparent',
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId.slice(1)}-${spanId}-01`,
    `00-${traceId}-${spanId}0-01`,
    `00-${traceId}-${spanId}-1`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-01.`,
    `01-${traceId}-${spanId}-01more`,
    `0x-${traceId}-${spanId}-01`,
    ` 00-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01\n`,
    // Node joins repeated headers like this.
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
  ];
  for (const header of [undefined, ['a', 'b'], ...invalid]) assert.equal(parseTraceparent(header), undefined, String(header));
});

test('a span of a method that the semantic conventions do not know is named HTTP', () => {
  const { name, attributes } = httpSpanEnd('PROPFIND', { route: '/packets', status: 404 });
  assert.equal(name, 'HTTP /packets');
  assert.equal(attributes['http.request.method'], '_OTHER');
});
