import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { createLookup } from '../../../src/kit/outgoing/lookups.ts';
import { createResolver, type ResolverOptions } from '../../../src/kit/outgoing/resolver.ts';
import { type DnsAnswer, startNameServer } from '../../support/dns.ts';
import { temporaryFolder } from '../../support/folder.ts';

const forever = new AbortController().signal;
const v4 = (address: string) => ({ address, family: 4 });
const v6 = (address: string) => ({ address, family: 6 });

/** A name server with a table of names, and a resolver that asks it, with an empty hosts file and no search domains. */
async function startResolver(t: TestContext, names: Record<string, DnsAnswer>, { hosts = '', conf = '' } = {}) {
  const folder = temporaryFolder(t);
  const [hostsFile, resolvConf] = [join(folder, 'hosts'), join(folder, 'resolv.conf')];
  writeFileSync(hostsFile, hosts);
  writeFileSync(resolvConf, conf);
  const dns = await startNameServer(t, (name, type) => {
    const answer = names[name] ?? 'no such name';
    return typeof answer === 'string' ? answer : answer.filter((address) => address.includes(':') === (type === 'AAAA'));
  });
  const parts = { servers: [dns.server], hostsFile, resolvConf } satisfies ResolverOptions;
  return { dns, hostsFile, resolve: createResolver(parts) };
}

const withCode = (code: string) => (error: unknown) => (error as { code?: unknown }).code === code;

describe('A name resolves', () => {
  test('to all its addresses of both families, IPv4 first', async (t) => {
    const { resolve } = await startResolver(t, { 'both.test': ['2606:4700::1111', '8.8.8.8', '8.8.4.4'], 'six.test': ['2606:4700::1111'] });
    assert.deepEqual(await resolve('both.test', forever), [v4('8.8.8.8'), v4('8.8.4.4'), v6('2606:4700::1111')]);
    assert.deepEqual(await resolve('six.test', forever), [v6('2606:4700::1111')]);
  });

  test('from the hosts file without a question, in any case of letters, and a changed file applies at once', async (t) => {
    const hosts = '# comment\n10.0.0.1 one.test One.alias # of one\n::1\tone.test\nnonsense\n';
    const { resolve, dns, hostsFile } = await startResolver(t, {}, { hosts });
    assert.deepEqual(await resolve('ONE.test', forever), [v4('10.0.0.1'), v6('::1')]);
    assert.deepEqual(await resolve('one.alias', forever), [v4('10.0.0.1')]);
    writeFileSync(hostsFile, '10.0.0.2 one.test and.others.test\n');
    assert.deepEqual(await resolve('one.test', forever), [v4('10.0.0.2')]);
    rmSync(hostsFile);
    await assert.rejects(resolve('one.test', forever), withCode('ENOTFOUND'));
    assert.deepEqual(dns.questions.toSorted(), ['A one.test', 'AAAA one.test']);
  });

  test('to the loopback addresses without a question if it is localhost or below it, and an IP address to itself', async (t) => {
    const { resolve, dns } = await startResolver(t, {});
    assert.deepEqual(await resolve('localhost', forever), [v4('127.0.0.1'), v6('::1')]);
    assert.deepEqual(await resolve('api.localhost', forever), [v4('127.0.0.1'), v6('::1')]);
    assert.deepEqual(await resolve('192.0.2.1', forever), [v4('192.0.2.1')]);
    assert.deepEqual(await resolve('::1', forever), [v6('::1')]);
    assert.deepEqual(dns.questions, []);
  });

  test('within the search domains of resolv.conf: short names there first, names with ndots dots as they are first', async (t) => {
    const conf = 'domain ignored.test\nsearch one.test. two.test\noptions timeout:1 ndots:2\n';
    const { resolve, dns } = await startResolver(t, { 'receiver.two.test': ['10.0.0.1'], 'a.b.public.test': ['8.8.8.8'] }, { conf });
    assert.deepEqual(await resolve('receiver', forever), [v4('10.0.0.1')]);
    assert.deepEqual(await resolve('a.b.public.test', forever), [v4('8.8.8.8')]);
    const asked = dns.questions.filter((question) => question.startsWith('A ')).map((question) => question.slice(2));
    assert.deepEqual(asked, ['receiver.one.test', 'receiver.two.test', 'a.b.public.test']);
  });

  test('with the addresses of one family when the server fails to answer for the other', async (t) => {
    const dns = await startNameServer(t, (_name, type) => (type === 'A' ? ['8.8.8.8'] : 'failed'));
    assert.deepEqual(await createResolver({ servers: [dns.server] })('half.test', forever), [v4('8.8.8.8')]);
  });
});

test('A look-up that is ended keeps the addresses it has, and without any it fails at once', async (t) => {
  const dns = await startNameServer(t, (name, type) => (name === 'half.test' && type === 'A' ? ['8.8.8.8'] : 'silence'));
  const resolve = createResolver({ servers: [dns.server] });
  const cancel = t.mock.method(Resolver.prototype, 'cancel');
  const ending = new AbortController();
  const found = resolve('half.test', ending.signal);
  const nothing = assert.rejects(resolve('silent.test', ending.signal), /the end/);
  await dns.asked(4);
  // Only after the answer for half.test has arrived, which was sent before this one.
  const other = await startNameServer(t, () => ['8.8.4.4']);
  await createResolver({ servers: [other.server] })('other.test', forever);
  ending.abort(new Error('the end'));
  assert.deepEqual(await found, [v4('8.8.8.8')]);
  await nothing;
  assert.equal(cancel.mock.callCount(), 2);
});

describe('Names that are never answered', () => {
  test('delay no look-up of another owner, and of their own owner only those above 32', async (t) => {
    const dns = await startNameServer(t, (name, type) => (name.startsWith('silent') ? 'silence' : type === 'A' ? ['8.8.8.8'] : []));
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const lookup = createLookup({ resolve: createResolver({ servers: [dns.server] }), lookupMs: 5_000 });
    const silent = Array.from({ length: 32 }, (_, index) => assert.rejects(lookup(`silent${index}.test`, 'one'), /longer than 5000 ms/));
    await dns.asked(64);
    t.mock.timers.tick(1_000);
    const late = lookup('late.test', 'one');
    assert.deepEqual(await lookup('good.test', 'other'), [v4('8.8.8.8')]);
    assert.ok(!dns.questions.includes('A late.test'));
    t.mock.timers.tick(4_000);
    await Promise.all(silent);
    assert.deepEqual(await late, [v4('8.8.8.8')]);
  });

  test('end at the timeout, and are not asked for again for five seconds', async (t) => {
    let lookups = 0;
    const lookup = createLookup({
      lookupMs: 1_000,
      resolve: (_name, signal) => {
        lookups += 1;
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('ended'))));
      },
    });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const first = Promise.all([assert.rejects(lookup('silent.test', 1), /ended/), assert.rejects(lookup('silent.test', 2), /ended/)]);
    t.mock.timers.tick(1_000);
    await first;
    await assert.rejects(lookup('silent.test', 3), /ended/);
    t.mock.timers.tick(4_999);
    await assert.rejects(lookup('silent.test', 1), /ended/);
    assert.equal(lookups, 1);
    t.mock.timers.tick(1);
    const again = assert.rejects(lookup('silent.test', 1), /ended/);
    assert.equal(lookups, 2);
    t.mock.timers.tick(1_000);
    await again;
  });

  test('are remembered for at most 1,000 names', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const asked: string[] = [];
    const lookup = createLookup({
      resolve: async (name) => {
        asked.push(name);
        throw new Error('no such name');
      },
    });
    for (let index = 0; index <= 1_000; index += 1) await assert.rejects(lookup(`no${index}.test`, 1));
    asked.length = 0;
    await assert.rejects(lookup('no1000.test', 1));
    await assert.rejects(lookup('no1.test', 1));
    await assert.rejects(lookup('no0.test', 1));
    assert.deepEqual(asked, ['no0.test']);
  });
});
