import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import type { ApprovalOptions, ApproveOptions, WorkOptions } from '../../src/client.ts';
import type { AskOptions } from '../../src/handoff/client/asking.ts';
import { Action } from '../../src/handoff/model/action.ts';
import { ApprovalRequest } from '../../src/handoff/model/approval.ts';
import { Question } from '../../src/handoff/model/hitl.ts';

/** What Python calls the options of TypeScript; each must be named, and null says that it has none. */
type Names<Options> = Record<keyof Options, string | null>;
const same = <Name extends string>(...names: Name[]) => Object.fromEntries(names.map((name) => [name, name])) as Record<Name, Name>;
const time = same('on_timeout', 'responder', 'exclude_source', 'reason');
const ask = {
  ...{ ...time, ...same('key', 'options', 'strict_options', 'schema', 'action', 'require_verified', 'remind_after_seconds') },
  timeoutSeconds: 'timeout',
} satisfies Names<AskOptions>;
const approval = {
  ...{ ...time, ...same('agent', 'framework', 'title', 'description', 'schema', 'decisions', 'valid_seconds') },
  ...same('summary', 'context', 'tags', 'subjects', 'priority', 'parent_packet_id'),
  timeoutSeconds: 'timeout',
  // Python ends the waiting by an exception or by cancelling its task.
  signal: null,
} satisfies Names<ApprovalOptions>;
const approve = { ...approval, call_id: 'call_id' } satisfies Names<ApproveOptions>;
const work = {
  ...{ leaseSeconds: 'lease_seconds', concurrency: 'concurrency', graceSeconds: 'grace_seconds', signal: 'stop' },
  // Python writes to its log.
  onError: null,
} satisfies Names<WorkOptions>;

const source = (name: string) => readFileSync(new URL(`../../packages/python/src/baton_client/${name}`, import.meta.url), 'utf8');
/** The names of parameters or fields, one a line. */
const namesIn = (text: string) => [...text.matchAll(/^ +(\w+): /gm)].map(([, name]) => name!).filter((name) => name !== 'self');
const fieldsOf = (file: string, name: string) => namesIn(source(file).match(new RegExp(`^class ${name}\\(.*?(?=^\\S)`, 'ms'))![0]);
/** The keyword parameters of each function of this name, without `**`. */
const keywordsOf = (file: string, name: string) =>
  [...source(file).matchAll(new RegExp(`^    (?:async )?def ${name}\\(\n        self,\n(.*?)^    \\)`, 'gms'))].map(([, text]) =>
    namesIn(text!.split(/^ +\*,$/m)[1]!),
  );
const sorted = (names: Iterable<string | null>) => [...new Set(names)].filter((name) => name !== null).sort();
const apart = (fields: object, ...left: string[]) => Object.keys(fields).filter((name) => !left.includes(name));

test('The options of ask, approve and work are the same in TypeScript and Python, and the fields of the API', () => {
  const asks = keywordsOf('worker.py', 'ask');
  assert.equal(asks.length, 2);
  for (const own of asks) assert.deepEqual(sorted([...own, ...fieldsOf('worker.py', 'AskOptions')]), sorted(Object.values(ask)));
  assert.deepEqual(
    sorted(['timeout', ...apart(Question.properties, 'required', 'question', 'timeout_seconds')]),
    sorted(Object.values(ask)),
  );

  const approves = keywordsOf('handoff/client.py', 'approve');
  assert.equal(approves.length, 2);
  const options = fieldsOf('approvals.py', 'ApprovalOptions');
  for (const own of approves) assert.deepEqual(sorted([...own, ...options]), sorted(Object.values(approve)));
  const action = apart(Action.properties, 'tool', 'arguments', 'arguments_digest');
  const request = apart(ApprovalRequest.properties, 'action', 'timeout_seconds');
  assert.deepEqual(sorted([...action, ...request, 'framework', 'timeout']), sorted(Object.values(approve)));
  const taken = source('approvals.py')
    .match(/^def _parts_of\(.*?^\)/ms)![0]
    .split(/^ +\*,$/m)[1]!;
  assert.deepEqual(sorted(namesIn(taken)), sorted(options));

  const works = keywordsOf('handoff/client.py', 'work');
  assert.equal(works.length, 2);
  for (const own of works) assert.deepEqual(sorted(own), sorted(Object.values(work)));
});
