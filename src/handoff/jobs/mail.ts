import { connect, type Socket } from 'node:net';

import { bareHost } from '../../kit/loopback.ts';
import { connectFailure, OutgoingError } from '../../kit/outgoing/failures.ts';
import { type AddressGuard, guardedLookup } from '../../kit/outgoing/guard.ts';

/** A mail. Its addresses are single ones, and its subject one line. */
interface OutgoingMail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** What identifies it, the same for each attempt, so that receivers recognise a repeat. */
  readonly id: string;
  /** The deadline of the whole exchange, in milliseconds. */
  readonly timeoutMs: number;
}

/** A refusal of the mail server. */
export class MailRefused extends Error {
  /** The reply code of SMTP. */
  readonly code: number;
  /** Whether the recipient or the message is refused for good (RFC 5321, 4.2.1), rather than this sender for now. */
  readonly isFinal: boolean;

  constructor(code: number, isFinal: boolean) {
    super(`The mail server refused with ${code}.`);
    this.name = 'MailRefused';
    this.code = code;
    this.isFinal = isFinal;
  }
}

interface MailerOptions {
  /** `smtp://` or `smtps://`, with user and password if the server wants them. */
  url: string;
  /** The sender, `address` or `Name <address>`. */
  from: string;
  guard: AddressGuard;
  /** Certificate authorities to trust instead of the default ones, in PEM. */
  ca?: string | undefined;
}

/** The most bytes of one reply of a mail server. */
const maxReply = 64 * 1024;

/** Sends mails through one mail server. The library is loaded with the first mail. */
export class Mailer {
  readonly #parts: MailerOptions;
  readonly #server: URL;
  /** The domain of the sender. */
  readonly #domain: string;
  readonly #exchanges = new Set<AbortController>();
  #isClosed = false;

  constructor(parts: MailerOptions) {
    this.#parts = parts;
    this.#server = new URL(parts.url);
    this.#domain = /@([^\s<>@]+)>?\s*$/.exec(parts.from)?.[1] ?? 'localhost';
  }

  /**
   * Sends a mail, on a connection of its own; resolves with the server's reply code.
   * @throws OutgoingError `timeout`, `dns_error`, `connection_refused`, `connection_reset`, `tls_error`, `address_refused` or `cancelled`
   * @throws MailRefused
   */
  async send(mail: OutgoingMail): Promise<number> {
    if (this.#isClosed) throw new OutgoingError('cancelled');
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(new OutgoingError('timeout')), mail.timeoutMs);
    this.#exchanges.add(ending);
    try {
      return await this.#exchange(mail, ending.signal);
    } catch (error) {
      throw ending.signal.aborted ? ending.signal.reason : failureOf(error, this.#server.protocol);
    } finally {
      clearTimeout(timer);
      this.#exchanges.delete(ending);
    }
  }

  /** Aborts all exchanges as `cancelled`. */
  close(): void {
    this.#isClosed = true;
    for (const ending of this.#exchanges) ending.abort(new OutgoingError('cancelled'));
  }

  /** Connects to an address that the guard has checked. */
  #open(signal: AbortSignal): Promise<Socket> {
    const { guard } = this.#parts;
    const { protocol, hostname: host, port } = this.#server;
    if (guard.refusesHost({ protocol, hostname: host })) throw new OutgoingError('address_refused');
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const lookup = guardedLookup(guard, protocol, () => 'mail');
    const socket = connect({
      host: bareHost(host),
      port: Number(port || (protocol === 'smtps:' ? 465 : 587)),
      lookup,
      autoSelectFamily: true,
    });
    const end = () => socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', end, { once: true });
    socket.once('connect', () => resolve(socket)).once('error', reject);
    return promise;
  }

  async #exchange(mail: OutgoingMail, signal: AbortSignal): Promise<number> {
    const { from, guard, ca } = this.#parts;
    const { protocol, hostname: host, username, password } = this.#server;
    const secure = protocol === 'smtps:';
    const { createTransport } = await import('nodemailer');
    signal.throwIfAborted();
    const connection = await this.#open(signal);
    // Where the text may be sent in the clear, an unverified certificate is no loss.
    const mayBePlain = !secure && guard.allowsPlain(host, connection.remoteAddress ?? '');
    const transport = createTransport({
      host,
      secure,
      connection,
      requireTLS: !secure && !mayBePlain,
      tls: { rejectUnauthorized: !mayBePlain, ...(ca === undefined ? {} : { ca }) },
      ...(username === '' ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
      greetingTimeout: mail.timeoutMs,
      socketTimeout: mail.timeoutMs,
      socketCloseTimeout: 0,
      maxResponseSize: maxReply,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const { to, subject, text, html, id } = mail;
    try {
      const { response } = await transport.sendMail({
        from,
        to: { name: '', address: to },
        subject,
        text,
        html,
        messageId: `<${id}@${this.#domain}>`,
        // RFC 3834: asks for no automatic reply, such as an absence note.
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
      });
      return Number(/^\d{3}/.exec(response)?.[0] ?? 250);
    } finally {
      connection.destroy();
    }
  }
}

/** What a failure of the library or of the connection stands for. */
function failureOf(error: unknown, protocol: string): Error {
  const { code, command, responseCode } = error as { code?: unknown; command?: unknown; responseCode?: unknown };
  if (code === 'ETLS') return new OutgoingError('tls_error', error);
  if (typeof responseCode === 'number')
    return new MailRefused(responseCode, responseCode >= 500 && (command === 'RCPT TO' || command === 'DATA'));
  if (/certificate|SSL|TLS/i.test(String((error as Error).message))) return new OutgoingError('tls_error', error);
  if (code === 'ETIMEDOUT') return new OutgoingError('timeout', error);
  return connectFailure(error, protocol);
}
