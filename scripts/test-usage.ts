import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, type TestContext } from 'node:test';

import { processorSeconds } from './processor-time.ts';

/**
 * Loaded before the files of a test process (`test-process.ts`): notes the processor time that each test takes and the store it is
 * on, with that of the programs that it starts, and writes it to the folder `BATON_TEST_USAGE` at the end.
 */
const folder = process.env.BATON_TEST_USAGE;

/** The file of a process that runs only one. */
const [, entry = ''] = process.argv;
const onlyFile = entry.endsWith('.test.ts') ? relative('', entry) : undefined;

/** Rows of the whole title of a test, a store and seconds. */
const notes: [title: string, store: string, seconds: number][] = [];
let noted = 0;

/** Notes the time since the last note. */
function note(title: string, store: string): void {
  const now = processorSeconds();
  notes.push([title, store, now - noted]);
  noted = now;
}

/** The store that a title names, as `test/support/stores.ts` spells it. */
const storeIn = (title: string) => /SQLite in memory|SQLite on disk|PostgreSQL through PgBouncer|PostgreSQL/.exec(title)?.[0] ?? 'no store';

const noteTest = (t: unknown) => {
  const { fullName } = t as TestContext;
  note(fullName, storeIn(fullName));
};

if (folder !== undefined) {
  beforeEach((t) => {
    // What ran before the first test loaded the files of the group.
    if (noted === 0) note(onlyFile ?? 'loading', 'no store');
    else noteTest(t);
  });
  afterEach(noteTest);
  process.once('exit', () => {
    note(onlyFile ?? 'ending', 'no store');
    writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(notes));
  });
}
