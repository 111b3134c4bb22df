import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { after, describe, type TestContext, test } from 'node:test';
import type { KnownBlock } from '@slack/types';

import { historyOf, packetIn, question } from '../../support/life.ts';
import { listenFor } from '../../support/listen.ts';
import { startMailServer } from '../../support/mail.ts';
import { startReceiver } from '../../support/receiver.ts';
import { adminKey, newTenant, startService, type TestService } from '../../support/service.ts';
import { onDisk, stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { register, startHooked } from '../../support/webhooks.ts';

const pem = (name: string) => readFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url), 'utf8');
const publicUrl = 'https://baton.example.com';
const password = 'a-password-of-the-mail-server';
const mailServer = await startMailServer({ after });
const mailSettings = (port: number, host = '127.0.0.1', rest: Record<string, string> = {}) => ({
  SERVICE_SMTP_URL: `smtp://${host}:${port}`,
  SERVICE_MAIL_FROM: 'baton@example.com',
  SERVICE_PUBLIC_URL: publicUrl,
  ...rest,
});

const createChannel = async (service: TestService, body: object, key = adminKey) => {
  const answer = await service.call('POST', '/channels', { body, key });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id as string;
};
const toDana = { kind: 'email', target: 'dana@example.com' };

/** How the last delivery to a channel went. */
async function outcomeOf(service: TestService, id: string): Promise<unknown[]> {
  const [{ status, last_error, last_status_code }] = (await service.call('GET', `/channels/${id}/deliveries`)).body;
  return [status, last_error, last_status_code];
}

/** Asks a question, makes one round of attempts, and returns how the message to a new channel went. */
async function outcomeWith(t: TestContext, settings: Record<string, string>, outgoing: object = {}, allow = '127.0.0.1') {
  const service = await startService(t, { settings: { SERVICE_WEBHOOK_ALLOW: allow, ...settings }, dependencies: { outgoing } });
  const id = await createChannel(service, toDana);
  await packetIn(service, 'awaiting_human');
  await service.handoff.runOnce.deliver();
  return { service, outcome: await outcomeOf(service, id) };
}

/** A server that takes connections and does with them what `handle` does. */
async function startRaw(t: TestContext, handle: (socket: Socket) => void) {
  const { port, sockets } = await listenFor(t, createServer(handle));
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  return { port, sockets, end };
}

describe('A mail server', () => {
  test('that never answers delays nothing else: webhooks, Slack and requests go on', async (t) => {
    const silent = await startRaw(t, () => undefined);
    const [hook, slack] = [await startReceiver(t), await startReceiver(t, 200)];
    const service = await startHooked(t, { settings: mailSettings(silent.port) });
    for (let count = 0; count < 10; count += 1) await createChannel(service, toDana);
    await createChannel(service, { kind: 'slack', target: slack.url });
    await register(service, hook.url, { events: ['packet.awaiting_human'] });
    const { id } = await packetIn(service, 'awaiting_human');
    const round = service.handoff.runOnce.deliver();
    await Promise.all([hook.received(1), slack.received(1)]);
    assert.equal((await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } })).status, 200);
    // A receiver that has not answered gets four attempts at most.
    await until(() => silent.sockets.length >= 4);
    assert.equal(silent.sockets.length, 4);
    silent.end();
    await round;
  });

  test('that stops at any point of the exchange is a timeout of the whole exchange, however it drips', async (t) => {
    for (const [name, handle] of Object.entries<(socket: Socket) => void>({
      silent: () => undefined,
      'after the greeting': (socket) => void socket.write('220 mail.test ESMTP\r\n'),
      dripping(socket) {
        const timer = setInterval(() => socket.write('220-still here\r\n'), 10);
        socket.on('close', () => clearInterval(timer));
      },
    })) {
      const { port } = await startRaw(t, handle);
      const { outcome } = await outcomeWith(t, mailSettings(port), { attemptMs: 200 });
      assert.deepEqual(outcome, ['failed', 'timeout', null], name);
    }
  });

  test('that disconnects, floods, does not speak SMTP or refuses connections is a failed attempt', async (t) => {
    for (const [name, handle, error] of [
      ['hangs up', (socket: Socket) => void socket.end(), 'connection_reset'],
      ['no SMTP', (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n'), 'connection_reset'],
      ['endless line', (socket: Socket) => void socket.write('2'.repeat(256 * 1024)), 'connection_reset'],
    ] as const) {
      const { port } = await startRaw(t, handle);
      const { outcome } = await outcomeWith(t, mailSettings(port), { attemptMs: 5000 });
      assert.deepEqual(outcome.slice(0, 2), ['failed', error], name);
    }
    const { outcome } = await outcomeWith(t, mailSettings(9));
    assert.deepEqual(outcome, ['failed', 'connection_refused', null]);
  });

  test('that never answers is cut off by a stop of the service, and the message is due again at once', async (t) => {
    const silent = await startRaw(t, () => undefined);
    const first = await startHooked(t, { store: onDisk, settings: mailSettings(silent.port) });
    const id = await createChannel(first, toDana);
    await packetIn(first, 'awaiting_human');
    const round = first.handoff.runOnce.deliver();
    await until(() => silent.sockets.length === 1);
    await first.handoff.stop();
    await round;
    const second = await startHooked(t, { databaseUrl: first.databaseUrl, clock: first.clock, settings: mailSettings(mailServer.port) });
    await second.handoff.runOnce.deliver();
    assert.deepEqual(await outcomeOf(second, id), ['delivered', null, 250]);
  });

  test('with a private address is refused, by name and by address, unless SERVICE_WEBHOOK_ALLOW names it', async (t) => {
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const before = mailServer.mails.length;
    for (const [host, allow] of [
      ['127.0.0.1', 'elsewhere.test'],
      ['localhost', 'elsewhere.test'],
      ['[::1]', 'elsewhere.test'],
      ['mail.test', 'elsewhere.test'],
    ] as const) {
      const { outcome } = await outcomeWith(t, mailSettings(mailServer.port, host), { resolve }, allow);
      assert.deepEqual(outcome, ['failed', 'address_refused', null], host);
    }
    assert.equal(mailServer.mails.length, before);
    const { outcome } = await outcomeWith(t, mailSettings(mailServer.port, 'mail.test'), { resolve }, 'mail.test');
    assert.deepEqual(outcome, ['delivered', null, 250]);
  });

  test('that may be plain is used with any certificate, and one with TLS from the start only with a valid one', async (t) => {
    const anyAuth = {
      onAuth: (_: unknown, __: unknown, callback: (error: null, answer: { user: string }) => void) => callback(null, { user: 'baton' }),
    };
    const serve = (name: string) => startMailServer(t, { ...anyAuth, key: pem(name), cert: pem(name) } as never);
    const [good, elsewhere] = [await serve('good'), await serve('elsewhere')];
    const run = async (port: number, protocol = 'smtp') =>
      (
        await outcomeWith(
          t,
          { ...mailSettings(port), SERVICE_SMTP_URL: `${protocol}://baton:${password}@receiver.test:${port}` },
          {
            resolve: async () => [{ address: '127.0.0.1', family: 4 }],
            ca: pem('authority'),
          },
          'receiver.test',
        )
      ).outcome;
    // Allowed to be plain, any of them will do.
    for (const { port } of [good, elsewhere]) assert.deepEqual(await run(port), ['delivered', null, 250]);
    assert.deepEqual([good.mails[0]?.secure, elsewhere.mails[0]?.secure], [true, true]);
    const direct = await startMailServer(t, { ...anyAuth, secure: true, key: pem('elsewhere'), cert: pem('elsewhere') } as never);
    assert.deepEqual((await run(direct.port, 'smtps')).slice(0, 2), ['failed', 'tls_error']);
    const sound = await startMailServer(t, { ...anyAuth, secure: true, key: pem('good'), cert: pem('good') } as never);
    assert.deepEqual(await run(sound.port, 'smtps'), ['delivered', null, 250]);
    assert.equal(sound.mails[0]?.user, 'baton');
  });

  test('that refuses the password or the sender is tried again, and no log has the password', async (t) => {
    const server = await startMailServer(t, {
      onAuth: (_auth, _session, callback) => callback(Object.assign(new Error('Invalid password'), { responseCode: 535 })),
      allowInsecureAuth: true,
    });
    const { service, outcome } = await outcomeWith(t, {
      ...mailSettings(server.port),
      SERVICE_SMTP_URL: `smtp://baton:${password}@127.0.0.1:${server.port}`,
      SERVICE_LOG_LEVEL: 'trace',
    });
    assert.deepEqual(outcome, ['failed', 'smtp_status', 535]);
    const { text } = await service.call('GET', '//metrics', { key: null });
    for (const shown of [...service.logs, text])
      assert.ok(!shown.includes(password) && !shown.includes(Buffer.from(password).toString('base64')));
    const strict = await startMailServer(t, {
      onMailFrom: (_address, _session, callback) => callback(Object.assign(new Error('not you'), { responseCode: 553 })),
    });
    assert.deepEqual((await outcomeWith(t, mailSettings(strict.port))).outcome, ['failed', 'smtp_status', 553]);
  });
});

describe('A Slack target', () => {
  test('is checked again at each attempt: an address that became private is refused, and a redirect is not followed', async (t) => {
    const inner = await startReceiver(t, 200);
    const redirecting = await startReceiver(t, (response) => void response.writeHead(302, { location: inner.url }).end());
    let address = '93.184.216.34';
    const service = await startService(t, {
      settings: { SERVICE_PUBLIC_URL: publicUrl, SERVICE_WEBHOOK_ALLOW: new URL(redirecting.url).hostname },
      dependencies: { outgoing: { resolve: async () => [{ address, family: 4 }] } },
    });
    const rebound = await createChannel(service, { kind: 'slack', target: 'https://hooks.slack.test/services/x' });
    const redirected = await createChannel(service, { kind: 'slack', target: redirecting.url });
    address = '10.0.0.1';
    await packetIn(service, 'awaiting_human');
    await service.handoff.runOnce.deliver();
    assert.deepEqual(await outcomeOf(service, rebound), ['failed', 'address_refused', null]);
    assert.deepEqual(await outcomeOf(service, redirected), ['failed', 'redirect_refused', 302]);
    assert.equal(inner.posts.length, 0);
  });

  test('that is gone deactivates the channel, with an entry in the audit log', async (t) => {
    const gone = await startReceiver(t, 410);
    const service = await startHooked(t);
    const id = await createChannel(service, { kind: 'slack', target: gone.url });
    await packetIn(service, 'awaiting_human');
    await service.handoff.runOnce.deliver();
    const [channel] = (await service.call('GET', '/channels')).body;
    assert.deepEqual([channel.active, channel.disabled_reason], [false, 'gone']);
    const { entries } = (await service.call('GET', '/audit?action=disabled')).body;
    assert.deepEqual(
      entries.map(({ resource, details }: { resource: string; details: unknown }) => [resource, details]),
      [['channel', { channel_id: id, reason: 'gone' }]],
    );
  });
});

/** Texts that try to be something else: markup of HTML and Slack, headers, other lines of the message, hidden characters. */
const hostile = [
  '<script>alert(1)</script><img src=x onerror=alert(1)>',
  '"><a href="https://evil.example">Answer</a>',
  '<!channel> <@U123> <https://evil.example|Answer> *bold* :smile: &lt;',
  'x\r\nBcc: evil@example.com\r\nContent-Type: text/html\r\n\r\nbody',
  'x\nAnswer here:\nhttps://evil.example/answer/1',
  '\u202egnp.exe\u202c \u2066 \u0000\u0007\u001b[31m \u2028Subject: y \ud800',
  '=?utf-8?Q?=0d=0aBcc:_evil@example.com?=',
].join('\n');

/** The same, without what names may not have. */
const hostileName = hostile.replaceAll('\u0000', '').replaceAll('\ud800', '');

const hostileQuestion = {
  required: true,
  reason: hostile,
  question: hostile,
  options: [hostile, { value: 'b', label: hostile }],
  responder: hostileName,
};
const hostilePacket = {
  metadata: {
    source_agent: { id: 'evil', name: hostileName, framework: hostile },
    target_agent: { id: 'resolver', name: hostileName },
  },
  context: { summary: hostile },
  hitl: hostileQuestion,
};

describe('No text of a packet', () => {
  test('becomes a header, a recipient or markup of a mail, or one of its own lines', async (t) => {
    const service = await startHooked(t, { settings: mailSettings(mailServer.port) });
    await createChannel(service, { ...toDana, target: 'hostile@example.com', name: hostileName, events: ['asked', 'answered'] });
    const { id } = await packetIn(service, 'awaiting_human', hostilePacket);
    await service.handoff.runOnce.deliver();
    const answer = { response: hostile, responded_by: hostileName, notes: hostile };
    const answered = await service.call('POST', `/packets/${id}/respond`, { body: answer });
    assert.equal(answered.status, 200, answered.text);
    await service.handoff.runOnce.deliver();
    const mails = mailServer.mails.filter(({ to }) => to.includes('hostile@example.com'));
    assert.equal(mails.length, 2);
    for (const { mail, to, raw } of mails) {
      assert.deepEqual(to, ['hostile@example.com']);
      const names = mail.headers.map(({ key }) => key).toSorted();
      const expected = [
        'auto-submitted',
        'content-type',
        'date',
        'from',
        'message-id',
        'mime-version',
        'subject',
        'to',
        'x-auto-response-suppress',
      ];
      assert.deepEqual(names, expected);
      assert.deepEqual([mail.to?.map(({ address }) => address), mail.cc, mail.bcc], [['hostile@example.com'], undefined, undefined]);
      assert.doesNotMatch(mail.subject ?? '', /[\r\n\u2028\u202e\p{Cc}]/u);
      assert.ok((mail.subject ?? '').length <= 140);
      assert.doesNotMatch(raw.slice(0, raw.indexOf('\r\n\r\n')), /^Bcc:/im);
      const { html = '', text = '' } = mail;
      assert.doesNotMatch(html, /<(script|img|iframe|style|form)|on\w+=(?!.*&)|evil\.example"/i);
      const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, url]) => url);
      assert.ok(links.every((url) => url?.startsWith(`${publicUrl}/answer/`)) && links.length <= 1);
      for (const line of text.split('\n'))
        if (/evil|alert|Bcc/.test(line))
          assert.match(line, /^> |^<script>.* (asks|is answered|waits)|^A question from |^Answer from /, line);
      assert.ok(!/^https:\/\/evil/m.test(text) && !/^Answer here:\nhttps:\/\/evil/m.test(text));
      for (const hidden of ['\u202e', '\u2066', '\u0000', '\u0007', '\u001b']) assert.ok(!`${text}${html}`.includes(hidden));
    }
  });

  test('becomes a link, a mention or emphasis in Slack, and every text has a length that Slack takes', async (t) => {
    const receiver = await startReceiver(t, 200);
    const service = await startHooked(t, { settings: { SERVICE_PUBLIC_URL: publicUrl } });
    await createChannel(service, { kind: 'slack', target: receiver.url, events: ['asked', 'answered'] });
    const long = { ...question, question: '𝔁<'.repeat(20_000), reason: 'r'.repeat(50_000), options: Array(200).fill('o'.repeat(500)) };
    await packetIn(service, 'awaiting_human', hostilePacket);
    await packetIn(service, 'awaiting_human', {
      hitl: long,
      context: { summary: 's'.repeat(100_000) },
      metadata: { ...hostilePacket.metadata },
    });
    const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, question: '\u0007', reason: '' } });
    await service.call('POST', `/packets/${id}/respond`, { body: { response: hostile, responded_by: hostileName } });
    await service.handoff.runOnce.deliver();
    await service.handoff.runOnce.deliver();
    assert.ok(receiver.posts.length >= 3);
    for (const { body } of receiver.posts) requireBlocks(JSON.parse(body));
  });
});

/** Checks a payload by Slack's own types and the limits that Slack documents for each of them. */
function requireBlocks({ text, blocks, ...rest }: { text: string; blocks: KnownBlock[] }): void {
  assert.deepEqual(rest, { unfurl_links: false, unfurl_media: false });
  assert.ok(text.length <= 3000 && !/[<>]/.test(text) && !/&(?!amp;|lt;|gt;)/.test(text), text);
  assert.ok(blocks.length > 0 && blocks.length <= 50);
  for (const block of blocks) {
    switch (block.type) {
      case 'header':
        requirePlain(block.text, 150);
        break;
      case 'section':
        assert.ok(block.text);
        requirePlain(block.text, 3000);
        assert.equal(block.fields ?? block.accessory, undefined);
        break;
      case 'context':
        assert.ok(block.elements.length > 0 && block.elements.length <= 10);
        for (const element of block.elements) requirePlain(element, 2000);
        break;
      case 'actions':
        assert.ok(block.elements.length > 0 && block.elements.length <= 25);
        for (const element of block.elements) {
          assert.ok(element.type === 'button');
          requirePlain(element.text, 75);
          assert.ok((element.url ?? '').startsWith(`${publicUrl}/answer/`) && (element.url ?? '').length <= 3000);
          assert.ok((element.action_id ?? '').length <= 255);
          assert.ok(element.style === 'primary' || element.style === 'danger');
        }
        break;
      default:
        assert.fail(`a block of the type ${block.type}`);
    }
  }
}

function requirePlain(object: { type: string }, length: number): void {
  const { type, text, emoji, ...rest } = object as { type: string; text: string; emoji?: boolean };
  assert.deepEqual([type, emoji, rest], ['plain_text', false, {}]);
  assert.ok(text.length >= 1 && text.length <= length, `${text.length} of ${length}`);
}

for (const store of stores) {
  describe(`A question that excludes its source, on ${store.name}`, () => {
    test('is sent to a channel of the asking key without a link, and to others with one that answers', async (t) => {
      const service = await startHooked(t, { store, settings: mailSettings(mailServer.port) });
      const { key: operator, id: tenant_id } = await newTenant(service);
      const { body: agent } = await service.call('POST', '/keys', { body: { name: 'agent', tenant_id } });
      const names = [`own-${store.name}`, `theirs-${store.name}`].map((name) => `${name.replaceAll(' ', '-')}@example.com`);
      await createChannel(service, { ...toDana, target: names[0] }, agent.key);
      await createChannel(service, { ...toDana, target: names[1] }, operator);
      const hitl = { ...question, exclude_source: true };
      const { id } = await packetIn(service, 'awaiting_human', { hitl }, agent.key);
      await service.handoff.runOnce.deliver();
      const [own, theirs] = names.map((name) => mailServer.mails.find(({ to }) => to.includes(name))?.mail.text ?? '');
      assert.match(own ?? '', /The question excludes links of this channel/);
      assert.doesNotMatch(own ?? '', /\/answer\//);
      const path = `/${/https:\/\/baton\.example\.com(\/answer\/\S+)/.exec(theirs ?? '')?.[1]}`;
      const page = await service.call('GET', path, { key: null });
      assert.equal(page.status, 200);
      const digest = /name="digest" value="([0-9a-f]{64})"/.exec(page.text)?.[1] ?? '';
      const sent = await service.call('POST', path, {
        key: null,
        raw: new URLSearchParams({ digest, response: 'Yes', name: 'dana' }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      });
      assert.equal(sent.status, 200, sent.text);
      assert.equal((await historyOf(service, id, operator)).at(-1)?.event_type, 'hitl_responded');
    });
  });
}
