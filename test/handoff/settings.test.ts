import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { keyFrom } from '../../src/handoff/rules/keys.ts';
import { readHandoffSettings, settingsTable, tierLimits } from '../../src/handoff/settings.ts';
import { fileKey, SettingsError } from '../../src/kit/settings.ts';
import { temporaryFolder } from '../support/folder.ts';

/** Every documented setting with its default as a user would write it; undefined without a default. */
const documented: Record<string, string | undefined> = {
  SERVICE_HOST: '0.0.0.0',
  SERVICE_PORT: '8080',
  SERVICE_DATABASE_URL: 'sqlite://./data/handoff.db',
  SERVICE_REDIS_URL: undefined,
  SERVICE_ADMIN_KEY: undefined,
  SERVICE_DEV_MODE: 'false',
  // Without a value it depends on the tier of the key.
  SERVICE_RATE_LIMIT_PER_MINUTE: undefined,
  SERVICE_HOURLY_QUOTA_FREE: '100',
  SERVICE_HOURLY_QUOTA_PRO: '1000',
  SERVICE_HOURLY_QUOTA_BUSINESS: '10000',
  SERVICE_HANDOFFS_PER_DAY_FREE: '5',
  SERVICE_HANDOFFS_PER_DAY_PRO: 'unlimited',
  SERVICE_HANDOFFS_PER_DAY_BUSINESS: 'unlimited',
  SERVICE_PACKET_BYTES_FREE: '65536',
  SERVICE_PACKET_BYTES_PRO: '262144',
  SERVICE_PACKET_BYTES_BUSINESS: '1048576',
  SERVICE_BATCH_MAX: '100',
  SERVICE_CONNECTIONS_FREE: '10',
  SERVICE_CONNECTIONS_PRO: '100',
  SERVICE_CONNECTIONS_BUSINESS: '1000',
  SERVICE_WEBHOOK_ALLOW: '',
  SERVICE_WEBHOOK_RETRY_SECONDS: '1,5,30,300,3600,21600',
  SERVICE_UNCLAIMED_TTL_SECONDS: '0',
  SERVICE_LOG_LEVEL: 'info',
};

const read = (environment: Record<string, string>) => readHandoffSettings({ environment });

function problemsOf(environment: Record<string, string>): string[] {
  try {
    read(environment);
  } catch (error) {
    assert.ok(error instanceof SettingsError, String(error));
    return error.message.split('\n');
  }
  return [];
}

describe('The settings of the handoff service', () => {
  test('include every specified one with its specified default, and each has a help sentence', () => {
    const table = Object.fromEntries(Object.values(settingsTable).map(({ variable, fallback }) => [variable, fallback]));
    for (const [variable, fallback] of Object.entries(documented)) {
      assert.ok(variable in table, `${variable} is missing`);
      assert.equal(table[variable], fallback, variable);
    }
    for (const { help } of Object.values(settingsTable)) assert.match(help, /^\S.+\.$/);
  });

  test('have the values of the documented defaults if nothing is set', () => {
    const settings = read({});
    assert.equal(settings.host, '0.0.0.0');
    assert.equal(settings.port, 8080);
    assert.equal(settings.databaseUrl, 'sqlite://./data/handoff.db');
    assert.equal(settings.redisUrl, undefined);
    assert.equal(settings.adminKey, undefined);
    assert.equal(settings.devMode, false);
    assert.equal(settings.rateLimitPerMinute, undefined);
    assert.equal(settings.batchMax, 100);
    assert.deepEqual(settings.webhookAllow, []);
    assert.deepEqual(settings.webhookRetrySeconds, [1, 5, 30, 300, 3600, 21_600]);
    assert.equal(settings.unclaimedTtlSeconds, 0);
    assert.equal(settings.logLevel, 'info');
    assert.deepEqual(tierLimits(settings), {
      free: { hourlyQuota: 100, handoffsPerDay: 5, packetBytes: 65_536, connections: 10 },
      pro: { hourlyQuota: 1000, handoffsPerDay: Number.POSITIVE_INFINITY, packetBytes: 262_144, connections: 100 },
      business: { hourlyQuota: 10_000, handoffsPerDay: Number.POSITIVE_INFINITY, packetBytes: 1_048_576, connections: 1000 },
    });
  });

  test('have the name of their variable in a TOML file, in lower case without SERVICE_', (t) => {
    const folder = temporaryFolder(t);
    const file = join(folder, 'handoff.toml');
    writeFileSync(
      file,
      Object.entries(documented)
        .filter(([, value]) => value)
        .map(([variable, value]) => `${variable.slice('SERVICE_'.length).toLowerCase()} = "${value}"`)
        .join('\n'),
    );
    assert.deepEqual(readHandoffSettings({ file }), read({}));
    assert.deepEqual(new Set(Object.values(settingsTable).map(fileKey)).size, Object.keys(settingsTable).length);
  });

  test('--host and --port are flags, and take precedence over the environment', () => {
    const flagged = Object.values(settingsTable).flatMap((setting) =>
      'flag' in setting && setting.flag !== undefined ? [setting.flag] : [],
    );
    assert.deepEqual(flagged.toSorted(), ['--host', '--port']);
    const { host, port } = readHandoffSettings({
      flags: { host: '127.0.0.1', port: '0' },
      environment: { SERVICE_HOST: '::', SERVICE_PORT: '9' },
    });
    assert.deepEqual({ host, port }, { host: '127.0.0.1', port: 0 });
  });

  test('report every problem at once', () => {
    const problems = problemsOf({
      SERVICE_PORT: '99999',
      SERVICE_DATABASE_URL: 'mysql://x',
      SERVICE_ADMIN_KEY: 'short',
      SERVICE_LOG_LEVEL: 'loud',
      SERVICE_HANDOFFS_PER_DAY_FREE: 'many',
    });
    assert.deepEqual(problems.map((line) => line.split(' ')[0]).toSorted(), [
      'SERVICE_ADMIN_KEY',
      'SERVICE_DATABASE_URL',
      'SERVICE_HANDOFFS_PER_DAY_FREE',
      'SERVICE_LOG_LEVEL',
      'SERVICE_PORT',
    ]);
  });

  test('accept database addresses as documented, and never quote the password of an invalid one', () => {
    for (const url of [
      'sqlite://./data/x.db',
      'sqlite:///var/lib/x.db',
      'sqlite::memory:',
      'postgres://u:p@host:5432/db',
      'postgresql://host/db',
    ]) {
      assert.equal(read({ SERVICE_DATABASE_URL: url }).databaseUrl, url);
    }
    for (const url of ['sqlite:', 'sqlite://', 'sqlite:x.db', 'x.db', 'mysql://u:p@host/db', 'postgres://', 'sqlite:///./x.db']) {
      assert.equal(problemsOf({ SERVICE_DATABASE_URL: url }).length, 1, url);
    }
    const [problem] = problemsOf({ SERVICE_DATABASE_URL: 'mysql://user:s3cret@host/db' });
    assert.ok(!problem!.includes('s3cret'));
    // Three slashes before a relative path are a common mistake, so the message explains them.
    assert.match(problemsOf({ SERVICE_DATABASE_URL: 'sqlite:///./data/x.db' })[0]!, /sqlite:\/\/\.\/data\/x\.db/);
  });

  test('take the xn-- form of a sender whose domain is beyond ASCII', () => {
    const fromOf = (SERVICE_MAIL_FROM: string) => readHandoffSettings({ environment: { SERVICE_MAIL_FROM } }).mailFrom;
    assert.equal(fromOf('Dana <dana@xn--mnchen-3ya.example>'), 'Dana <dana@xn--mnchen-3ya.example>');
    assert.throws(
      () => fromOf('Dana <dana@münchen.example>'),
      /SERVICE_MAIL_FROM must be .*; a domain beyond ASCII is written in its xn-- form$/,
    );
  });

  test('accept any admin key of 16 or more visible characters, and never quote it [H187]', () => {
    const generated = keyFrom(Buffer.alloc(32, 1));
    for (const key of ['0123456789abcdef', 'p@ss-word_with.signs!', generated])
      assert.equal(read({ SERVICE_ADMIN_KEY: key }).adminKey, key);
    for (const key of [
      '0123456789abcde',
      'sixteen with spaces',
      'tab\tseparated-characters',
      `${generated.slice(0, -1)}!`,
      'umlaute-äöü-äöü-äöü',
    ]) {
      const [problem, ...others] = problemsOf({ SERVICE_ADMIN_KEY: key });
      assert.match(problem!, /^SERVICE_ADMIN_KEY must be /, key);
      assert.equal(others.length, 0);
      assert.ok(!problem!.includes(key));
    }
  });

  test('read the quotas: 0 allows none, unlimited is no quota, and 0 turns a request limit off [H224]', () => {
    const settings = read({
      SERVICE_HANDOFFS_PER_DAY_FREE: '0',
      SERVICE_HANDOFFS_PER_DAY_PRO: '7',
      SERVICE_HANDOFFS_PER_DAY_BUSINESS: 'unlimited',
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_HOURLY_QUOTA_FREE: '0',
    });
    assert.deepEqual(
      [settings.handoffsPerDayFree, settings.handoffsPerDayPro, settings.handoffsPerDayBusiness],
      [0, 7, Number.POSITIVE_INFINITY],
    );
    assert.deepEqual([settings.rateLimitPerMinute, settings.hourlyQuotaFree], [0, 0]);
    for (const bad of ['-1', '1.5', 'infinite']) assert.equal(problemsOf({ SERVICE_HANDOFFS_PER_DAY_PRO: bad }).length, 1, bad);
    assert.deepEqual(problemsOf({ SERVICE_HANDOFFS_PER_DAY_PRO: '' }), []);
  });

  test('of an identity provider name each problem, and the secret of its client may be in a file', (t) => {
    const issuer = { SERVICE_OIDC_ISSUER: 'https://issuer.example', SERVICE_PUBLIC_URL: 'https://baton.example' };
    const client = { ...issuer, SERVICE_OIDC_CLIENT_ID: 'baton' };
    const file = join(temporaryFolder(t), 'secret');
    writeFileSync(file, 'a secret\n');
    assert.equal(read({ ...client, SERVICE_OIDC_CLIENT_SECRET_FILE: file }).oidcClientSecretFile, 'a secret');
    for (const address of ['http://127.0.0.1:9', 'http://localhost/realms/x', 'http://[::1]:9', 'https://issuer.example/x/'])
      assert.equal(read({ ...issuer, SERVICE_OIDC_ISSUER: address }).oidcIssuer, address);
    const key = Buffer.alloc(32).toString('base64');
    assert.equal(read({ ...client, SERVICE_SESSION_KEY: key }).sessionKey, key);
    const rights = (value: string) => ({ ...issuer, SERVICE_OIDC_RIGHTS: value });
    for (const [settings, problem] of [
      [{ ...issuer, SERVICE_OIDC_ISSUER: 'http://issuer.example' }, /^SERVICE_OIDC_ISSUER must be the https address/],
      [{ ...issuer, SERVICE_OIDC_ISSUER: 'https://issuer.example?x=1' }, /^SERVICE_OIDC_ISSUER must be /],
      [{ ...issuer, SERVICE_OIDC_ISSUER: 'https://user@issuer.example' }, /^SERVICE_OIDC_ISSUER must be /],
      [{ ...client, SERVICE_PUBLIC_URL: '' }, /SERVICE_OIDC_ISSUER needs SERVICE_PUBLIC_URL/],
      [{ SERVICE_OIDC_CLIENT_ID: 'baton' }, /SERVICE_OIDC_CLIENT_ID needs SERVICE_OIDC_ISSUER/],
      [{ ...issuer, SERVICE_OIDC_REQUIRED: 'answers' }, /SERVICE_OIDC_REQUIRED needs SERVICE_OIDC_CLIENT_ID/],
      [{ ...client, SERVICE_OIDC_REQUIRED: 'keys' }, /^SERVICE_OIDC_REQUIRED must be /],
      [{ ...client, SERVICE_OIDC_CLIENT_SECRET: 'a', SERVICE_OIDC_CLIENT_SECRET_FILE: file }, /are both set/],
      [{ ...client, SERVICE_OIDC_CLIENT_SECRET_FILE: `${file}-missing` }, /^SERVICE_OIDC_CLIENT_SECRET_FILE /],
      [{ ...client, SERVICE_OIDC_SCOPES: 'profile' }, /^SERVICE_OIDC_SCOPES must be scopes .* with openid/],
      [{ ...client, SERVICE_OIDC_TOKEN_TYPES: 'none' }, /^SERVICE_OIDC_TOKEN_TYPES must be /],
      [{ ...client, SERVICE_SESSION_KEY: 'short' }, /^SERVICE_SESSION_KEY must be 32 bytes/],
      [{ ...client, SERVICE_SESSION_HOURS: '0' }, /^SERVICE_SESSION_HOURS must be /],
      [rights('no JSON'), /SERVICE_OIDC_RIGHTS .*it is no JSON/],
      [rights('[]'), /SERVICE_OIDC_RIGHTS .*it is no object/],
      [rights('{"*": "read"}'), /SERVICE_OIDC_RIGHTS .*"\*" has no list/],
      [rights('{"*": ["root"]}'), /SERVICE_OIDC_RIGHTS .*there is no right "root"/],
      [rights('{"ops": ["read"]}'), /SERVICE_OIDC_RIGHTS names the group "ops"; .* begin with "idp:"/],
      [{ ...rights('{"idp:ops": ["read"]}'), SERVICE_OIDC_GROUP_PREFIX: 'sso:' }, /names the group "idp:ops"; .* begin with "sso:"/],
    ] as [Record<string, string>, RegExp][]) {
      const problems = problemsOf(settings);
      assert.deepEqual([problems.length, problem.test(problems[0] ?? '')], [1, true], `${JSON.stringify(settings)}: ${problems}`);
    }
  });
});
