import assert from 'node:assert/strict';
import { test } from 'node:test';

import { csvOf } from '../../../src/handoff/rules/audit-file.ts';

test('In the CSV file of an audit log a spreadsheet finds no formula, and each value is one cell', () => {
  const entry = (actor: string, details = {}) => ({
    timestamp: '2026-03-01T09:30:00.000Z',
    action: 'created',
    resource: 'packet',
    packet_id: null,
    actor,
    key_id: null,
    details,
    id: '1',
  });
  const lines = (actor: string, details = {}) => csvOf([entry(actor, details) as never]).split('\r\n');
  assert.equal(lines('agent:a')[0], '\uFEFFtimestamp,action,resource,packet_id,actor,key_id,details,id');
  for (const start of ['=', '+', '-', '@', '\t'])
    assert.equal(lines(`${start}1+1`)[1], `2026-03-01T09:30:00.000Z,created,packet,,'${start}1+1,,{},1`);
  assert.equal(lines('\r=1').slice(1).join('\r\n'), `2026-03-01T09:30:00.000Z,created,packet,,"'\r=1",,{},1\r\n`);
  assert.equal(lines('a,"b"', { to: 'x' })[1], '2026-03-01T09:30:00.000Z,created,packet,,"a,""b""",,"{""to"":""x""}",1');
});
