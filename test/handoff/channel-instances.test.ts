import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { openInstances } from '../support/instances.ts';
import { happenings, packetIn, question } from '../support/life.ts';
import { startMailServer } from '../support/mail.ts';
import type { TestService } from '../support/service.ts';

/** Returns what starts instances on one empty PostgreSQL, with a mail server and a clock that they share. */
async function openMailing(t: TestContext) {
  const { start, clock } = await openInstances(t);
  const mailServer = await startMailServer(t);
  const settings = {
    SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
    SERVICE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
    SERVICE_MAIL_FROM: 'baton@example.com',
    SERVICE_PUBLIC_URL: 'https://baton.example.com',
  };
  return { start: () => start(settings), clock, mailServer };
}

const channelTo = async (service: TestService, target: string) => {
  const { status, text } = await service.call('POST', '/channels', { body: { kind: 'email', target } });
  assert.equal(status, 201, text);
};

/** Makes four rounds, which are enough for everything that is due in these tests. */
async function deliverAll(...services: TestService[]): Promise<void> {
  for (let round = 0; round < 4; round += 1) await Promise.all(services.map(({ handoff }) => handoff.runOnce.deliver()));
}

describe('Two instances on one PostgreSQL', () => {
  test('remind once of each question, also after a restart, and send each message once', async (t) => {
    const { start, clock, mailServer } = await openMailing(t);
    const [one, other] = [await start(), await start()];
    await channelTo(one, 'dana@example.com');
    const ids: string[] = [];
    for (let count = 0; count < 10; count += 1)
      ids.push(
        (await packetIn(one, 'awaiting_human', { hitl: { ...question, question: `Refund ${count}?`, remind_after_seconds: 60 } })).id,
      );
    clock.turn(60);
    await Promise.all([one, other].flatMap(({ handoff }) => [handoff.runOnce.sweep(), handoff.runOnce.sweep()]));
    await deliverAll(one, other);
    await one.handoff.stop();
    const restarted = await start();
    clock.turn(3600);
    await Promise.all([restarted, other].map(({ handoff }) => handoff.runOnce.sweep()));
    await deliverAll(restarted, other);
    for (const id of ids) {
      const reminders = (await happenings(restarted, id)).filter((one) => one === 'hitl_reminded');
      assert.deepEqual(reminders, ['hitl_reminded']);
    }
    const subjects = mailServer.mails.map(({ mail }) => mail.subject).toSorted();
    const expected = ids.flatMap((_, index) => [`Question: Refund ${index}?`, `Reminder: Refund ${index}?`]);
    assert.deepEqual(subjects, expected.toSorted());
  });

  test('take one answer of two people who follow their links at the same time, one on each', async (t) => {
    const { start, mailServer } = await openMailing(t);
    const services = [await start(), await start()] as const;
    const people = ['dana', 'lee'] as const;
    for (const person of people) await channelTo(services[0], `${person}@example.com`);
    for (let race = 0; race < 5; race += 1) {
      mailServer.mails.length = 0;
      const { id } = await packetIn(services[0], 'awaiting_human');
      await deliverAll(...services);
      const paths = people.map((person) => {
        const text = mailServer.mails.find(({ to }) => to[0]?.startsWith(person))?.mail.text ?? '';
        return `/${/https:\/\/baton\.example\.com(\/answer\/\S+)/.exec(text)?.[1]}`;
      });
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
      const digests = await Promise.all(
        paths.map(async (path, index) => {
          // Scanners of mail programs have fetched the link before, in their own ways.
          for (const method of ['HEAD', 'GET', 'OPTIONS']) await services[index]!.call(method, path, { key: null });
          const { text } = await services[index]!.call('GET', path, { key: null });
          return /name="digest" value="([0-9a-f]{64})"/.exec(text)?.[1] ?? '';
        }),
      );
      const answers = await Promise.all(
        paths.map((path, index) => {
          const raw = new URLSearchParams({
            digest: digests[index]!,
            response: `Yes, says ${people[index]}`,
            name: people[index]!,
          }).toString();
          return services[index]!.call('POST', path, { key: null, raw, headers });
        }),
      );
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 410]);
      const winner = people[answers.findIndex(({ status }) => status === 200)]!;
      const { hitl } = (await services[1].call('GET', `/packets/${id}`)).body;
      assert.deepEqual([hitl.response, hitl.responded_by], [`Yes, says ${winner}`, winner]);
      assert.equal((await happenings(services[0], id)).filter((one) => one === 'hitl_responded').length, 1);
      for (const path of paths) assert.equal((await services[0].call('GET', path, { key: null })).status, 410);
    }
  });
});
