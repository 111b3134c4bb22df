import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

import { cliProgram, runCli, startCliBench } from '../../support/cli.ts';
import { findProgram } from '../../support/programs.ts';
import { adminKey, createPacket } from '../../support/service.ts';

const scriptFor = async (shell: string) => (await runCli(['completion', shell], {})).stdout;

for (const [shell, flag] of [
  ['bash', '-n'],
  ['zsh', '-n'],
  ['fish', '--no-execute'],
] as const) {
  test(`The completion for ${shell} is a script that ${shell} can read`, { skip: findProgram(shell) === undefined }, async (t) => {
    const script = await scriptFor(shell);
    for (const word of ['packets', 'awaiting', 'retry-all', 'awaiting_human', 'critical', 'status', 'tenant-id'])
      assert.ok(script.includes(word), word);
    const folder = mkdtempSync(join(tmpdir(), 'baton-completion-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'script'), script);
    const { status, stderr } = spawnSync(shell, [flag, join(folder, 'script')], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });
}

describe('In a real shell', () => {
  test('bash completes commands, options, statuses, priorities, files, and the ids of recent packets', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const folder = mkdtempSync(join(tmpdir(), 'baton-path-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'service-cli'), `#!/bin/sh\nexec '${process.execPath}' '${cliProgram}' "$@"\n`);
    chmodSync(join(folder, 'service-cli'), 0o755);
    const env = {
      PATH: `${folder}${delimiter}${process.env.PATH}`,
      HOME: bench.home,
      SERVICE_URL: bench.address,
      SERVICE_API_KEY: adminKey,
    };
    const complete = async (...words: string[]) => {
      const line = `source <(service-cli completion bash); COMP_WORDS=(${['service-cli', ...words].map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _service_cli; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return (await promisify(execFile)('bash', ['--norc', '-c', line], { env })).stdout.trim().split('\n');
    };
    assert.deepEqual(await complete('pac'), ['packets']);
    assert.ok((await complete('packets', '')).includes('awaiting'));
    assert.deepEqual(await complete('packets', 'list', '--status', 'c'), ['created', 'claimed', 'completed']);
    assert.deepEqual(await complete('list', '--priority', ''), ['low', 'normal', 'high', 'critical']);
    assert.deepEqual(await complete('list', '--source'), ['--source-agent']);
    assert.deepEqual(await complete('--format', ''), ['table', 'json']);
    assert.deepEqual(await complete('-q', 'packets', 'get', ''), [id]);
    assert.deepEqual(await complete('claim', id.slice(0, 8)), [id]);
    assert.deepEqual(await complete('completion', ''), ['bash', 'zsh', 'fish']);
    assert.deepEqual(await complete('list', '--tags', ''), ['']);
  });

  test('fish completes the same', { skip: findProgram('fish') === undefined }, async (t) => {
    const bench = await startCliBench(t);
    const file = join(bench.home, 'completion.fish');
    writeFileSync(file, await scriptFor('fish'));
    const complete = (line: string) =>
      spawnSync('fish', ['--no-config', '-c', `source ${file}; complete -C '${line}'`], {
        encoding: 'utf8',
        env: { HOME: bench.home, PATH: process.env.PATH },
      })
        .stdout.split('\n')
        .map((candidate) => candidate.split('\t')[0]);
    assert.deepEqual(complete('service-cli pack').filter(Boolean), ['packets']);
    assert.deepEqual(complete('service-cli packets list --status cl').filter(Boolean), ['claimed']);
  });
});
