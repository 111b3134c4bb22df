import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';

import { type CliBench, startCliBench } from '../../support/cli.ts';
import { cliProgram } from '../../support/cli-program.ts';
import { findProgram } from '../../support/programs.ts';
import { adminKey, createPacket, packetRequest } from '../../support/service.ts';

const driver = fileURLToPath(new URL('../../support/terminal.py', import.meta.url));

/** The output of the program on a terminal with `columns` columns. Each step waits for an output, then types an input. */
async function atTerminal(
  { home, address }: CliBench,
  args: readonly string[],
  {
    columns = 80,
    steps = [],
    environment = {},
  }: { columns?: number; steps?: [string, string][]; environment?: Record<string, string> } = {},
): Promise<string> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TERM: 'xterm-256color',
    SERVICE_URL: address,
    SERVICE_API_KEY: adminKey,
    ...environment,
  };
  const command = [driver, String(columns), JSON.stringify(steps), process.execPath, cliProgram, ...args];
  return (await promisify(execFile)('python3', command, { env })).stdout;
}

describe('On a terminal', { skip: findProgram('python3') === undefined }, () => {
  test('a table is cut to the width of the terminal, and coloured unless NO_COLOR is set [H302]', async (t) => {
    const bench = await startCliBench(t);
    const summary = `Refund \u001b[2J ${'very '.repeat(40)}long`;
    const { id } = await createPacket(bench.service, { context: { summary } });
    for (const columns of [80, 120, 60]) {
      const lines = stripVTControlCharacters(await atTerminal(bench, ['list'], { columns }))
        .trimEnd()
        .split('\r\n');
      assert.equal(lines.length, 2);
      assert.ok(
        lines.every((line) => line.length <= columns),
        `${columns}: ${lines.join('|')}`,
      );
      assert.ok(lines[1]!.startsWith(`${id}  created`));
    }
    const text = await atTerminal(bench, ['list'], { columns: 100 });
    assert.match(text, /Refund \[2J very[^\r]*…/);
    assert.ok(text.includes('\u001b[34mcreated\u001b[0m'));
    assert.ok(!text.includes('\u001b[2J'), 'nothing in a packet moves the cursor');
    assert.ok(!(await atTerminal(bench, ['list'], { environment: { NO_COLOR: '1' } })).includes('\u001b['));
  });

  test('respond shows the question and accepts the number of an option [H311]', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const hitl = { required: true, reason: 'Over 50', question: 'Refund?', options: ['Approve', 'Refuse'] };
    await bench.service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
    const steps: [string, string][] = [['any text): ', '1\r']];
    const text = stripVTControlCharacters(await atTerminal(bench, ['respond', id, '--responded-by', 'dana'], { steps }));
    assert.match(text, /Refund\?\r\nWhy: Over 50\r\n {2}1 {2}Approve\r\n {2}2 {2}Refuse\r\nAnswer \(1 to 2, or any text\): 1\r+\n/);
    assert.match(text, /Answer +Approve \(dana, typed, not verified\)/);
  });

  test('respond asks who answers', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const hitl = { required: true, reason: 'Over 50', question: 'Refund?' };
    await bench.service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
    const steps: [string, string][] = [
      ['Answer: ', 'Half\r'],
      ['Your name: ', 'Dana\r'],
    ];
    assert.match(
      stripVTControlCharacters(await atTerminal(bench, ['respond', id], { steps })),
      /Answer +Half \(Dana, typed, not verified\)/,
    );
  });

  test('create from a file shows a progress bar and removes it at the end [H309]', async (t) => {
    const bench = await startCliBench(t);
    const file = join(bench.home, 'packets.jsonl');
    writeFileSync(file, `${JSON.stringify(packetRequest())}\n`.repeat(250));
    const text = await atTerminal(bench, ['create', '-f', file, '--quiet']);
    assert.ok(!text.includes('[#'), '--quiet hides the progress bar');
    const shown = await atTerminal(bench, ['create', '-f', file]);
    assert.ok(shown.includes(`\r[${'#'.repeat(10)}${'.'.repeat(14)}] 40% 100 created, 0 refused\u001b[K`));
    assert.ok(shown.endsWith(`\r[${'#'.repeat(24)}] 100% 250 created, 0 refused\u001b[K\r\u001b[K250 created, 0 refused.\r\n`));
  });

  test('JSON is indented but otherwise unchanged [H302]', async (t) => {
    const bench = await startCliBench(t);
    const text = await atTerminal(bench, ['list', '--format', 'json']);
    assert.match(text, /^\{\r\n {2}"packets": \[\],\r\n/);
    assert.equal(JSON.parse(text).total, 0);
  });

  test('the service logs readable lines, or JSON if it is configured', async (t) => {
    const bench = await startCliBench(t);
    const serve = (format: Record<string, string>) =>
      atTerminal(bench, ['serve', '--port', '0', '--host', '127.0.0.1'], {
        steps: [['started', '\u0003']],
        environment: { SERVICE_DATABASE_URL: 'sqlite::memory:', ...format },
      });
    assert.match(await serve({}), /\d\dZ handoff INFO started /);
    assert.match(await serve({ SERVICE_LOG_FORMAT: 'json' }), /^\{"level":30,.*"msg":"started"\}/m);
  });
});
