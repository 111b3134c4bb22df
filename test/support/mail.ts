import { readFileSync } from 'node:fs';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

import { Arrivals } from './arrivals.ts';
import { listen } from './listen.ts';

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
  const arrivals = new Arrivals<ReceivedMail>();
  const refused = new Map<string, number>();
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
        const mail = await PostalMime.parse(raw);
        callback();
        arrivals.add({ raw, from, to, secure, user: user as string | undefined, mail });
      });
    },
    ...options,
  });
  // A client that hangs up is part of some tests.
  server.on('error', () => undefined);
  const port = await listen(server.server);
  t.after(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return {
    port,
    mails: arrivals.all,
    refused,
    received: (count) => arrivals.reached(count),
  };
}
