import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import {
  checked,
  fileText,
  listOf,
  oneOf,
  readSettings,
  SettingsError,
  type SettingsTable,
  text,
  whole,
  wholeOrUnlimited,
  yesOrNo,
} from '../../src/kit/settings.ts';
import { temporaryFolder } from '../support/folder.ts';

const table = {
  host: { variable: 'SERVICE_HOST', flag: '--host', fallback: 'localhost', help: 'Where.', parse: text },
  port: { variable: 'SERVICE_PORT', flag: '--port', fallback: '8080', help: 'The port.', parse: whole(0, 65_535) },
  cap: { variable: 'SERVICE_CAP', fallback: 'unlimited', help: 'A cap.', parse: wholeOrUnlimited },
  quick: { variable: 'SERVICE_QUICK', fallback: 'false', help: 'Whether.', parse: yesOrNo },
  level: { variable: 'SERVICE_LEVEL', fallback: 'info', help: 'How much.', parse: oneOf(['debug', 'info']) },
  hosts: { variable: 'SERVICE_HOSTS', fallback: '', help: 'Some.', parse: listOf(text) },
  key: {
    variable: 'SERVICE_KEY',
    fallback: undefined,
    help: 'A key.',
    parse: checked((value) => (value.length < 4 ? '4 characters or more' : undefined)),
  },
} as const satisfies SettingsTable;

function tomlFile(t: TestContext, content: string | Buffer): string {
  const folder = temporaryFolder(t);
  const file = join(folder, 'service.toml');
  writeFileSync(file, content);
  return file;
}

function problemsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof SettingsError, String(error));
    return error.message.split('\n');
  }
  return assert.fail('No problem was found.');
}

describe('Settings', () => {
  test('have their defaults unless they are set', () => {
    assert.deepEqual(readSettings(table, {}), {
      host: 'localhost',
      port: 8080,
      cap: Number.POSITIVE_INFINITY,
      quick: false,
      level: 'info',
      hosts: [],
    });
    assert.equal(readSettings(table, {}).key, undefined);
  });

  test('come from a flag, else the environment, else the file, else the default', (t) => {
    const file = tomlFile(t, 'port = 1\nhost = "file"\nlevel = "debug"\n');
    assert.equal(readSettings(table, { file }).port, 1);
    assert.equal(readSettings(table, { file, environment: { SERVICE_PORT: '2' } }).port, 2);
    assert.equal(readSettings(table, { file, environment: { SERVICE_PORT: '2' }, flags: { port: '3' } }).port, 3);
    const { host, level, quick } = readSettings(table, { file, environment: { SERVICE_HOST: 'environment' } });
    assert.deepEqual({ host, level, quick }, { host: 'environment', level: 'debug', quick: false });
  });

  test('are not set by an empty variable [H281]', () => {
    assert.equal(readSettings(table, { environment: { SERVICE_PORT: '' } }).port, 8080);
  });

  test('report all problems at once, each with the name that the user wrote [H281]', (t) => {
    const file = tomlFile(t, 'level = "loud"\nprot = 1\n');
    const problems = problemsOf(() =>
      readSettings(table, {
        file,
        flags: { port: '99999' },
        environment: { SERVICE_QUICK: 'maybe', SERVICE_CAP: '-1', SERVICE_KEY: 'abc' },
      }),
    );
    assert.deepEqual(
      problems.toSorted(),
      [
        '--port must be a whole number from 0 to 65535, not "99999"',
        'SERVICE_CAP must be a whole number or "unlimited", not "-1"',
        'SERVICE_KEY must be 4 characters or more',
        'SERVICE_QUICK must be true or false, not "maybe"',
        `${file} has a setting that does not exist: prot`,
        `level in ${file} must be one of debug, info, not "loud"`,
      ].toSorted(),
    );
  });

  test('report a file that is missing or not TOML together with the other problems', (t) => {
    const environment = { SERVICE_PORT: 'x' };
    const missing = problemsOf(() => readSettings(table, { file: '/nowhere/service.toml', environment }));
    assert.equal(missing.length, 2);
    assert.match(missing[0]!, /^The settings file \/nowhere\/service\.toml could not be read: /);
    const file = tomlFile(t, 'port 1');
    assert.match(problemsOf(() => readSettings(table, { file }))[0]!, /could not be read/);
  });

  test('are read with a byte order mark, and refused in another encoding than UTF-8 [H420]', (t) => {
    assert.deepEqual(readSettings(table, { file: tomlFile(t, '\ufeffhosts = "café"\n') }).hosts, ['café']);
    const latin1 = tomlFile(t, Buffer.from('hosts = "caf\xe9"\n', 'latin1'));
    const [problem] = problemsOf(() => readSettings(table, { file: latin1 }));
    assert.equal(problem, `The settings file ${latin1} could not be read: it is not in UTF-8; save it in this encoding`);
    assert.throws(() => fileText(latin1), /a file that can be read: it is not in UTF-8/);
  });

  test('accept whole numbers and nothing similar', () => {
    for (const bad of ['1.5', '-1', '1e3', '0x10', 'abc', ' ', '65536', '1 2']) {
      assert.match(
        problemsOf(() => readSettings(table, { environment: { SERVICE_PORT: bad } }))[0]!,
        /^SERVICE_PORT must be a whole number/,
      );
    }
    assert.equal(readSettings(table, { environment: { SERVICE_PORT: ' 65535 ' } }).port, 65_535);
    assert.equal(readSettings(table, { environment: { SERVICE_PORT: '0' } }).port, 0);
  });

  test('read `unlimited`, yes and no, and lists', () => {
    const { cap, quick, hosts } = readSettings(table, {
      environment: { SERVICE_CAP: '0', SERVICE_QUICK: 'TRUE', SERVICE_HOSTS: ' a, b ,,c' },
    });
    assert.deepEqual({ cap, quick, hosts }, { cap: 0, quick: true, hosts: ['a', 'b', 'c'] });
  });

  test('may be a table in the file if the setting supports one; otherwise it is a problem', (t) => {
    const labels = {
      ...{ variable: 'SERVICE_LABELS', fallback: undefined, help: 'Names.', parse: text },
      parseTable: (given: Readonly<Record<string, unknown>>) => Object.entries(given).join(';'),
    };
    assert.equal(readSettings({ labels }, { file: tomlFile(t, '[labels]\nci = "a"\n"two words" = "b"\n') }).labels, 'ci,a;two words,b');
    assert.equal(readSettings({ labels }, { file: tomlFile(t, 'labels = "plain"\n') }).labels, 'plain');
    const file = tomlFile(t, '[key]\nname = "value"\n');
    assert.deepEqual(
      problemsOf(() => readSettings(table, { file })),
      [`key in ${file} must be a single value, not a table`],
    );
  });

  test('may be a list in the file', (t) => {
    assert.deepEqual(readSettings(table, { file: tomlFile(t, 'hosts = ["a", "b"]\nquick = true\n') }).hosts, ['a', 'b']);
  });
});
