import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';

import { startCliBench } from '../../support/cli.ts';
import { cliProgram, runCliProgram } from '../../support/cli-program.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { findProgram } from '../../support/programs.ts';
import { adminKey, createPacket } from '../../support/service.ts';

const scriptFor = async (shell: string) => (await runCliProgram(['completion', shell], {})).stdout;
const shells = ['bash', 'zsh', 'fish'] as const;

/** A service with a packet, and an environment in which `service-cli` and `npx` are programs. */
async function startShellBench(t: TestContext) {
  const bench = await startCliBench(t);
  const { id } = await createPacket(bench.service);
  const folder = join(bench.home, 'bin');
  mkdirSync(folder);
  const program = `'${process.execPath}' '${cliProgram}'`;
  writeFileSync(join(folder, 'service-cli'), `#!/bin/sh\nexec ${program} "$@"\n`);
  writeFileSync(join(folder, 'npx'), `#!/bin/sh\n[ "$1 $2" = '--no-install service-cli' ] && shift 2 && exec ${program} "$@"\n`);
  for (const name of ['service-cli', 'npx']) chmodSync(join(folder, name), 0o755);
  const env = {
    PATH: `${folder}${delimiter}${process.env.PATH}`,
    HOME: bench.home,
    SERVICE_URL: bench.address,
    SERVICE_API_KEY: adminKey,
  };
  const run = async (program: string, ...args: string[]) => (await promisify(execFile)(program, args, { env })).stdout;
  return { ...bench, id: id as string, env, run };
}

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(' ');

/** How each shell is asked for the words that complete a command line. */
const asked: Record<(typeof shells)[number], (words: readonly string[]) => string[]> = {
  bash: (words) => [
    '--norc',
    '-c',
    `source <(service-cli completion bash); COMP_WORDS=(${quoted(words)}); COMP_CWORD=${words.length - 1}; _service_cli; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  zsh: (words) => [
    '-f',
    '-c',
    `compdef() { : }; compadd() { shift; print -rl -- "$@" }; source <(service-cli completion zsh); words=(${quoted(words)}); CURRENT=${words.length}; _service_cli`,
  ],
  fish: (words) => ['--no-config', '-c', `service-cli completion fish | source; complete -C '${words.join(' ')}'`],
};

for (const shell of shells) {
  describe(`In ${shell}`, { skip: findProgram(shell) === undefined }, () => {
    test('service-cli completes commands, options, statuses, priorities and the ids of recent packets, also by npx', async (t) => {
      const { run, id } = await startShellBench(t);
      const complete = async (...words: string[]) =>
        (await run(shell, ...asked[shell](words)))
          .split('\n')
          .map((line) => line.split('\t')[0]!)
          .filter(Boolean)
          .sort();
      for (const program of [['service-cli'], ['npx', 'service-cli']]) {
        assert.deepEqual(await complete(...program, 'pac'), ['packets']);
        assert.deepEqual(await complete(...program, 'packets', 'list', '--status', 'c'), ['claimed', 'completed', 'created']);
        assert.deepEqual(await complete(...program, 'claim', id.slice(0, 8)), [id]);
      }
      assert.ok((await complete('service-cli', 'packets', '')).includes('awaiting'));
      assert.ok(!(await complete('service-cli', '')).includes('complete'), 'the command for scripts is hidden');
      assert.deepEqual(await complete('service-cli', 'list', '--priority', ''), ['critical', 'high', 'low', 'normal']);
      assert.deepEqual(await complete('service-cli', 'list', '--source'), ['--source-agent']);
      assert.deepEqual(await complete('service-cli', '--format', ''), ['json', 'table']);
      assert.deepEqual(await complete('service-cli', '-q', 'packets', 'get', ''), [id]);
      assert.deepEqual(await complete('service-cli', 'completion', ''), ['bash', 'fish', 'zsh']);
      assert.deepEqual(await complete('service-cli', 'list', '--tags', ''), []);
    });

    test('completion --install makes the shell complete service-cli from its next start, and changes nothing the second time', async (t) => {
      const { home, env } = await startShellBench(t);
      const install = () => runCliProgram(['completion', shell, '--install'], { environment: env });
      const startFile = { bash: '.bashrc', zsh: '.zshrc', fish: '.config/fish/conf.d/service-cli.fish' }[shell];
      // In Latin-1, as some still are: its bytes stay as they are.
      if (shell !== 'fish') writeFileSync(join(home, startFile), Buffer.from('export MINE=1 # caf\xe9', 'latin1'));
      const { exitCode, stderr } = await install();
      assert.equal(exitCode, 0, stderr);
      assert.ok(stderr.includes(home));
      const written = readFileSync(join(home, startFile), 'latin1');
      if (shell !== 'fish') assert.match(written, /^export MINE=1 # caf\xe9\n\[ -f /);
      await install();
      assert.equal(readFileSync(join(home, startFile), 'latin1'), written);
      const question = { bash: 'complete -p service-cli', zsh: 'print $_comps[service-cli]', fish: 'complete -c service-cli' }[shell];
      const { stdout } = spawnSync(shell, ['-i', '-c', question], { env, encoding: 'utf8' });
      assert.match(stdout, /_service_cli/);
    });
  });
}

test('Each completion is a script that its shell can read, and asks the program for the words', async (t) => {
  const folder = temporaryFolder(t);
  for (const [shell, flag] of [
    ['bash', '-n'],
    ['zsh', '-n'],
    ['fish', '--no-execute'],
  ] as const) {
    const script = await scriptFor(shell);
    assert.match(script, / complete -- /);
    writeFileSync(join(folder, 'script'), script);
    if (findProgram(shell) === undefined) continue;
    const { status, stderr } = spawnSync(shell, [flag, join(folder, 'script')], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  }
});
