import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { Mailer } from '../../../src/handoff/jobs/mail.ts';
import { parseAllowList } from '../../../src/kit/outgoing/addresses.ts';
import { OutgoingError } from '../../../src/kit/outgoing/failures.ts';
import { createGuard } from '../../../src/kit/outgoing/guard.ts';
import { startMailServer } from '../../support/mail.ts';

const pem = (name: string) => readFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url), 'utf8');
const mail = { to: 'dana@example.com', subject: 'A question', text: 'Yes?', html: '<p>Yes?</p>', id: '1', timeoutMs: 10_000 };

/** Sends a mail with a password to a server that may not be spoken to in the clear, as one with a public address. */
async function send(t: TestContext, port: number): Promise<number> {
  const resolve = async () => [{ address: '127.0.0.1', family: 4 as const }];
  const guard = createGuard({ allow: parseAllowList(['127.0.0.1']), setting: 'ALLOW', resolve });
  const mailer = new Mailer({
    url: `smtp://baton:a-password@receiver.test:${port}`,
    from: 'baton@example.com',
    // No address of a test is public, and what the list allows may be plain.
    guard: { ...guard, allowsPlain: () => false },
    ca: pem('authority'),
  });
  t.after(() => mailer.close());
  return mailer.send(mail);
}

/** A mail server that takes any password and keeps those that it got. */
async function startServer(t: TestContext, options: object) {
  const passwords: unknown[] = [];
  const server = await startMailServer(t, {
    onAuth({ password }, _session, callback) {
      passwords.push(password);
      callback(null, { user: 'baton' });
    },
    allowInsecureAuth: true,
    ...options,
  });
  return { ...server, passwords };
}

describe('Mail over smtp:// to a server that the allow list does not name', () => {
  test('is refused by a server that offers no STARTTLS before the password is sent', async (t) => {
    const server = await startServer(t, { disabledCommands: ['STARTTLS'] });
    await assert.rejects(send(t, server.port), (error) => error instanceof OutgoingError && error.failure === 'tls_error');
    assert.deepEqual([server.passwords, server.mails], [[], []]);
  });

  test('is refused if the certificate is of another host or of an unknown authority', async (t) => {
    for (const name of ['elsewhere', 'expired']) {
      const server = await startServer(t, { key: pem(name), cert: pem(name) });
      await assert.rejects(send(t, server.port), (error) => error instanceof OutgoingError && error.failure === 'tls_error', name);
      assert.deepEqual([server.passwords, server.mails], [[], []]);
    }
  });

  test('is sent with TLS to a server that offers STARTTLS with a valid certificate', async (t) => {
    const server = await startServer(t, {});
    assert.equal(await send(t, server.port), 250);
    assert.deepEqual([server.passwords, server.mails.map(({ secure }) => secure)], [['a-password'], [true]]);
  });
});
