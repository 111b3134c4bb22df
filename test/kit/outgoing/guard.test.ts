import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { isPublic, parseAllowList } from '../../../src/kit/outgoing/addresses.ts';
import { OutgoingError } from '../../../src/kit/outgoing/failures.ts';
import { createGuard, type GuardOptions } from '../../../src/kit/outgoing/guard.ts';
import type { Resolve } from '../../../src/kit/outgoing/resolver.ts';

const never: Resolve = () => {
  throw new Error('Nothing should be looked up.');
};

/** A resolver with a table of names; others do not exist. */
const table =
  (names: Record<string, readonly string[]>): Resolve =>
  async (name) => {
    const found = names[name];
    if (found === undefined) throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };

const guardOf = (items: readonly string[], parts: Partial<GuardOptions> = {}) =>
  createGuard({ allow: parseAllowList(items), setting: 'SERVICE_WEBHOOK_ALLOW', resolve: never, ...parts });

describe('isPublic', () => {
  // The cases cover the first and last address of each range, and the adjacent public addresses.
  const refused = [
    ...['0.0.0.0', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0', '100.127.255.255', '127.0.0.1', '127.255.255.255'],
    ...['169.254.0.0', '169.254.169.254', '172.16.0.0', '172.31.255.255', '192.0.0.0', '192.0.0.255', '192.0.2.1', '192.88.99.1'],
    ...['192.168.0.0', '192.168.255.255', '198.18.0.0', '198.19.255.255', '198.51.100.7', '203.0.113.7', '224.0.0.0', '239.255.255.255'],
    ...['240.0.0.0', '255.255.255.255'],
    ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::ffff:0:127.0.0.1', '64:ff9b::7f00:1'],
    ...['64:ff9b::808:808', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', '100::', '100::1', '2001::', '2001:0:53aa:64c::1'],
    ...['2001:10::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::1', '2002:7f00:1::', '2002:808:808::', '3fff::1'],
    ...['5f00::1', 'fc00::1', 'fdff::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fec0::1', 'ff00::', 'ff02::1', '4000::1'],
    ...['localhost', '127.1', '2130706433', '0x7f.1', ''],
  ];
  for (const address of refused) test(`${address || 'nothing'} is not`, () => assert.equal(isPublic(address), false));

  const open = [
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
    ...['172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
    ...['2000::1', '2001:200::1', '2001:4860:4860::8888', '2003::1', '2606:4700::1111', '3ffe:ffff::1'],
  ];
  for (const address of open) test(`${address} is`, () => assert.equal(isPublic(address), true));
});

describe('The form of a URL', () => {
  const problems: Record<string, RegExp> = {
    'ftp://example.com/': /not an http or https URL/,
    'javascript:alert(1)': /not an http or https URL/,
    'example.com/hook': /not an http or https URL/,
    'https://': /not an http or https URL/,
    'https:example.com': /not an http or https URL/,
    'https:\\\\example.com': /not an http or https URL/,
    ' https://example.com': /not an http or https URL/,
    'https://exam\nple.com': /not an http or https URL/,
    'https://example.com:99999/': /not an http or https URL/,
    'https://example.com:0/': /port 0/,
    'https://user@example.com/': /credentials/,
    'https://:secret@example.com/': /credentials/,
    'https://example.com/#part': /fragment/,
    'https://example.com/#': /fragment/,
    [`https://example.com/${'a'.repeat(3000)}`]: /more than 2048 characters/,
  };
  for (const [url, sentence] of Object.entries(problems)) {
    test(`${url.slice(0, 40)} is refused`, async () => {
      assert.match((await guardOf([]).problem(url))!, sentence);
    });
  }

  test('a URL may have 2,048 characters', async () => {
    const url = `https://8.8.8.8/${'a'.repeat(2048 - 16)}`;
    assert.equal(url.length, 2048);
    assert.equal(await guardOf([]).problem(url), undefined);
  });
});

describe('The address of a URL', () => {
  const literals = [
    ...['127.0.0.1', '2130706433', '0x7f.1', '0x7f000001', '127.1', '0177.0.0.1', '017700000001', '127.0.0.1.'],
    ...['１２７.0.0.1', '127。0。0。1', 'localhost', 'LOCALHOST', 'localhost.', 'api.localhost', '0', '0.0.0.0'],
    ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[0:0:0:0:0:ffff:7f00:0001]', '[64:ff9b::7f00:1]'],
    ...['[2002:7f00:1::]', '[2001:0:53aa:64c::1]', '[fe80::1]', '169.254.169.254', '0xa9fea9fe', '10.0.0.1', '[fc00::1]'],
  ];
  for (const host of literals) {
    test(`https://${host}/ is refused without a look-up`, async () => {
      assert.match((await guardOf([]).problem(`https://${host}/`))!, /not public; use SERVICE_WEBHOOK_ALLOW to allow/);
    });
  }

  test('a public address is accepted', async () => {
    assert.equal(await guardOf([]).problem('https://8.8.8.8/hook'), undefined);
    assert.equal(await guardOf([]).problem('https://[2606:4700::1111]:8443/hook'), undefined);
  });

  test('a name is refused when any of its addresses is', async () => {
    const guard = guardOf([], {
      resolve: table({
        'public.test': ['8.8.8.8', '2606:4700::1111'],
        'private.test': ['10.0.0.8'],
        'mixed.test': ['8.8.8.8', '::ffff:127.0.0.1'],
      }),
    });
    assert.equal(await guard.problem('https://public.test/'), undefined);
    assert.match((await guard.problem('https://private.test/'))!, /not public/);
    assert.match((await guard.problem('https://mixed.test/'))!, /not public/);
  });

  test('a name that does not resolve is accepted, also if its look-up never ends', async () => {
    assert.equal(await guardOf([], { resolve: table({}) }).problem('https://nowhere.test/'), undefined);
    const hanging = guardOf([], { resolve: () => new Promise(() => undefined), lookupMs: 1 });
    assert.equal(await hanging.problem('https://slow.test/'), undefined);
    await assert.rejects(hanging.addressesOf(new URL('https://slow.test/')), isFailure('dns_error'));
  });

  test('concurrent look-ups of a name are shared', async () => {
    let lookups = 0;
    const guard = guardOf([], {
      resolve: async () => {
        lookups += 1;
        return [{ address: '8.8.8.8', family: 4 }];
      },
    });
    const target = new URL('https://public.test/');
    await Promise.all([guard.addressesOf(target), guard.addressesOf(target), guard.addressesOf(target)]);
    assert.equal(lookups, 1);
    await guard.addressesOf(target);
    assert.equal(lookups, 2);
  });

  test('plain http only reaches what the allow list names', async () => {
    const resolve = table({ 'inside.test': ['10.0.0.8'], 'public.test': ['8.8.8.8'] });
    const guard = guardOf(['10.0.0.0/8', 'named.test'], { resolve });
    assert.equal(await guard.problem('http://10.1.2.3:9000/'), undefined);
    assert.equal(await guard.problem('http://inside.test/'), undefined);
    assert.equal(await guard.problem('http://named.test/'), undefined);
    for (const url of ['http://8.8.8.8/', 'http://public.test/', 'http://nowhere.test/', 'http://192.168.0.1/']) {
      assert.match((await guard.problem(url))!, /must begin with https:\/\/; use SERVICE_WEBHOOK_ALLOW to allow/, url);
    }
    const open = guardOf([], { resolve, plainHttp: true });
    assert.equal(await open.problem('http://public.test/'), undefined);
    assert.match((await open.problem('http://inside.test/'))!, /not public/);
  });

  test('the allow list accepts hosts, addresses and ranges', async () => {
    const guard = guardOf(['Named.test.', 'localhost', '127.0.0.1', '[::1]', 'fd00::/8'], {
      resolve: table({ 'named.test': ['10.0.0.8'] }),
    });
    for (const host of ['named.test', 'NAMED.test.', 'localhost:9000', '127.1', '[::1]', '[fd12::1]']) {
      assert.equal(await guard.problem(`https://${host}/`), undefined, host);
    }
    for (const host of ['127.0.0.2', '[fc00::1]', '10.0.0.8', 'a.localhost']) {
      assert.match((await guard.problem(`https://${host}/`))!, /not public/, host);
    }
    // The host of a URL that is not of the web keeps its case.
    assert.equal(guard.refusesHost(new URL('smtp://LOCALHOST:25')), false);
  });

  for (const item of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', 'host/8', 'https://host', 'a b', '::1/129', '']) {
    test(`an allow list with ${JSON.stringify(item)} is refused`, () => {
      assert.throws(() => parseAllowList([item]), /host names, IP addresses or CIDR ranges/);
    });
  }
});

function isFailure(failure: string): (error: unknown) => boolean {
  return (error) => error instanceof OutgoingError && error.failure === failure;
}
