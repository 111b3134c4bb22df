import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A mail that the server took: as sent, and as a mail program reads it. */
interface ReceivedMail {
  readonly raw: string;
  readonly from: string;
  readonly to: readonly string[];
  readonly secure: boolean;
  readonly user: string | undefined;
  readonly mail: Email;
}

/** A mail server. */
interface TestMailServer {
  readonly port: number;
  readonly mails: ReceivedMail[];
  /** The addresses that it refuses, with the reply code. */
  readonly refused: Map<string, number>;
  /** Resolves once `count` mails have arrived. */
  received(count: number): Promise<void>;
}

const pem = (name: string) => readFileSync(new URL(`tls/${name}.pem`, import.meta.url), 'utf8');

/** Starts a mail server that ends with the test. By default it wants no password and offers no TLS. */
export async function startMailServer(
  t: { after(stop: () => Promise<void>): unknown },
  options: SMTPServerOptions = {},
): Promise<TestMailServer> {
  const mails: ReceivedMail[] = [];
  const refused = new Map<string, number>();
  const waiting = new Set<() => void>();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.onAuth === undefined ? ['AUTH', 'STARTTLS'] : [],
    disableReverseLookup: true,
    closeTimeout: 1,
    key: pem('good'),
    cert: pem('good'),
    onRcptTo({ address }, _session, callback) {
      const code = refused.get(address);
      callback(code === undefined ? null : Object.assign(new Error('refused by the test'), { responseCode: code }));
    },
    onData(stream, { envelope, secure, user }, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', async () => {
        const raw = Buffer.concat(chunks).toString();
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ raw, from, to, secure, user: user as string | undefined, mail: await PostalMime.parse(raw) });
        callback();
        for (const check of waiting) check();
      });
    },
    ...options,
  });
  // A client that hangs up is part of some tests.
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    refused,
    received: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (mails.length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}
