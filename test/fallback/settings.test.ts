import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { databaseUrlOf, readFallbackSettings } from '../../src/fallback/settings.ts';
import { SettingsError } from '../../src/kit/settings.ts';
import { temporaryFolder } from '../support/folder.ts';

type Sources = Parameters<typeof readFallbackSettings>[0];

function problemsOf(sources: Sources): string[] {
  try {
    readFallbackSettings(sources);
  } catch (error) {
    assert.ok(error instanceof SettingsError, String(error));
    return error.message.split('\n');
  }
  return [];
}

const keysOf = (text: string) => readFallbackSettings({ environment: { SERVICE_API_KEYS: text } }).apiKeys;

function tomlFile(t: TestContext, content: string): string {
  const folder = temporaryFolder(t);
  const file = join(folder, 'fallback.toml');
  writeFileSync(file, content);
  return file;
}

describe('Settings of the fallback service', () => {
  test('have the documented defaults [F82]', () => {
    const { host, port, storage, rateLimit, allowLive, allowOpen, apiKeys, liveAllow, liveKeys, logLevel } = readFallbackSettings({});
    assert.deepEqual(
      { host, port, storage, rateLimit, allowLive, allowOpen, apiKeys, liveAllow, liveKeys, logLevel },
      {
        host: '127.0.0.1',
        port: 8000,
        storage: 'memory',
        rateLimit: undefined,
        allowLive: false,
        allowOpen: false,
        apiKeys: { keys: [], warnings: [] },
        liveAllow: [],
        liveKeys: undefined,
        logLevel: 'info',
      },
    );
  });

  test("ignore the handoff service's variables", () => {
    const environment = { SERVICE_HOST: '0.0.0.0', SERVICE_PORT: '8080', SERVICE_DATABASE_URL: 'sqlite://./data/handoff.db' };
    const { host, port, storage } = readFallbackSettings({ environment });
    assert.deepEqual({ host, port, storage }, { host: '127.0.0.1', port: 8000, storage: 'memory' });
  });

  test('accept each form of --storage, and name the right one for a wrong one [F82]', () => {
    for (const url of ['memory', 'sqlite://./data/x.db', 'sqlite://x.db', `sqlite://${tmpdir()}/x.db`, 'postgres://u:p@host:5432/db']) {
      assert.equal(readFallbackSettings({ flags: { storage: url } }).storage, url);
    }
    assert.equal(databaseUrlOf({ storage: 'memory' }), 'sqlite::memory:');
    const wrong: [url: string, sentence: RegExp][] = [
      [
        'sqlite:///./data/x.db',
        /^--storage must be sqlite:\/\/\.\/data\/x\.db for a path from the current folder \(two slashes, then the path\)/,
      ],
      [
        'sqlite:///no/such/folder/x.db',
        /^--storage must be in an existing folder, and \/no\/such\/folder does not exist: .*sqlite:\/\/\.\/no\/such\/folder\/x\.db/,
      ],
      ['sqlite:x.db', /^--storage must be memory, sqlite:\/\/PATH, .*not "sqlite:x\.db"/],
      ['mysql://u:secret@h/d', /^--storage must be memory, sqlite:\/\/PATH/],
      ['disk', /^--storage must be memory, sqlite:\/\/PATH/],
    ];
    for (const [url, sentence] of wrong) {
      const [problem = ''] = problemsOf({ flags: { storage: url } });
      assert.match(problem, sentence);
      assert.ok(!problem.includes('secret'));
    }
  });

  test('read a rate limit, and explain its form otherwise [F82]', () => {
    const { rateLimit } = readFallbackSettings({ flags: { rateLimit: '100/minute' } });
    assert.deepEqual(rateLimit, { count: 100, period: 'minute', periodMs: 60_000 });
    for (const bad of [
      '100',
      '100/minuet',
      '0/minute',
      '-1/second',
      '1.5/hour',
      '/day',
      '100/',
      '100/60',
      '1/minute/2',
      '9999999999/day',
    ]) {
      const [problem = ''] = problemsOf({ flags: { rateLimit: bad } });
      assert.equal(
        problem,
        `--rate-limit must be a count of 1 or more and a period (second, minute, hour or day), such as 100/minute, not "${bad}"`,
      );
    }
  });

  test('accept plain keys and label:key; the key may contain colons [F85]', () => {
    assert.deepEqual(keysOf('bare, ci:one ,,ops:a:b').keys, [
      { key: 'bare', label: null },
      { key: 'one', label: 'ci' },
      { key: 'a:b', label: 'ops' },
    ]);
  });

  test('accept key:label only if the right part is a role word, with a warning that quotes no key [F85]', () => {
    const { keys, warnings } = keysOf('s3cret-value:admin,ci:one');
    assert.deepEqual(keys[0], { key: 's3cret-value', label: 'admin' });
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /entry 1 .* read as key:label/);
    assert.ok(!warnings[0]!.includes('s3cret'));
    assert.deepEqual(keysOf('admin:s3cret').warnings, []);
  });

  test('refuse role words as keys, duplicate keys, labels without keys and invalid characters; no sentence quotes a key [F85]', () => {
    const wrong: [text: string, sentence: RegExp][] = [
      ['admin', /entry 1 has a role word where its key should be/],
      ['ci:abc,read:admin', /entry 2 has a role word where its key should be/],
      ['ci:s3cret,other:s3cret', /entry 2 repeats the key of entry 1/],
      ['ci:', /entry 1 has a label and no key/],
      [':s3cret', /entry 1 has nothing before its colon/],
      ['s3cret with spaces', /entry 1 is not one/],
      ['s3crét', /entry 1 is not one/],
    ];
    for (const [text, sentence] of wrong) {
      const [problem = ''] = problemsOf({ environment: { SERVICE_API_KEYS: text } });
      assert.match(problem, sentence);
      assert.match(problem, /^SERVICE_API_KEYS must be a list of keys/);
      assert.ok(!problem.includes('s3cr'), problem);
    }
  });

  test('read keys from a table of the file, label = key, and other settings by the names of their flags [F82]', (t) => {
    const file = tomlFile(
      t,
      'storage = "sqlite://./x.db"\nrate_limit = "5/second"\nallow_live = true\nport = 0\n[api_keys]\nci = "one"\n"two words" = "x"\n',
    );
    assert.match(problemsOf({ file })[0]!, /^api_keys in .* the entry "two words" is not one/);
    const good = tomlFile(
      t,
      'storage = "sqlite://./x.db"\nrate_limit = "5/second"\nallow_live = true\n[api_keys]\nci = "one"\nk3y = "viewer"\n',
    );
    const { storage, rateLimit, allowLive, apiKeys } = readFallbackSettings({ file: good });
    assert.deepEqual([storage, rateLimit?.count, allowLive], ['sqlite://./x.db', 5, true]);
    assert.deepEqual(apiKeys.keys, [
      { key: 'one', label: 'ci' },
      { key: 'k3y', label: 'viewer' },
    ]);
    assert.equal(apiKeys.warnings.length, 1);
    assert.match(problemsOf({ file: tomlFile(t, '[api_keys]\nci = 5\n') })[0]!, /each key a string; the key of "ci" is not/);
    assert.match(problemsOf({ file: tomlFile(t, '[keys]\nci = "x"\n') })[0]!, /a setting that does not exist: keys/);
  });

  test('refuse an open service on a non-loopback host without --allow-open [F88]', () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) {
      assert.match(
        problemsOf({ flags: { host } })[0]!,
        /No API key is configured, and other machines can reach --host .*: set SERVICE_API_KEYS, or use --allow-open/,
      );
      assert.deepEqual(problemsOf({ flags: { host, allowOpen: 'true' } }), []);
      assert.deepEqual(problemsOf({ flags: { host }, environment: { SERVICE_API_KEYS: 'one' } }), []);
    }
    for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) assert.deepEqual(problemsOf({ flags: { host } }), []);
  });

  test('read allowed hosts and key grants, and explain their form otherwise [F34]', () => {
    const environment = {
      SERVICE_LIVE_ALLOW: 'localhost, 10.0.0.0/8',
      SERVICE_LIVE_KEYS: 'MY_KEY@llm.example.com:8443, OTHER_*@example.com',
    };
    const { liveAllow, liveKeys } = readFallbackSettings({ environment });
    assert.deepEqual(liveAllow, ['localhost', '10.0.0.0/8']);
    assert.deepEqual(liveKeys, [
      { variable: 'MY_KEY', host: 'llm.example.com', port: 8443 },
      { variable: 'OTHER_*', host: 'example.com', port: null },
    ]);
    assert.match(
      problemsOf({ environment: { SERVICE_LIVE_ALLOW: '10.0.0.0/99' } })[0]!,
      /^SERVICE_LIVE_ALLOW must be host names, IP addresses or CIDR ranges/,
    );
    assert.match(
      problemsOf({ environment: { SERVICE_LIVE_KEYS: 'MY_KEY' } })[0]!,
      /^SERVICE_LIVE_KEYS must be a list of grants; "MY_KEY" is not of the form NAME@host/,
    );
  });
});
