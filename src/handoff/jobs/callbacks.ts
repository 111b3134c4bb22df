import { OutgoingError, type OutgoingFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing } from '../../kit/outgoing/outgoing.ts';
import type { CallbackFailure } from '../model/occurrence.ts';
import type { PostToCallback } from '../service/subscriptions.ts';

/** The timeout of the message that verifies a callback, in milliseconds: its subscriber waits. */
const timeoutMs = 5000;

/** The most bytes of an answer: it repeats a short text. */
const maxBytes = 4096;

/** The failures in the words of the extension, which tell nothing of the receiver's network. */
const failures: Readonly<Partial<Record<OutgoingFailure, CallbackFailure>>> = {
  timeout: 'timeout',
  tls_error: 'tls_error',
  too_large: 'challenge_failed',
};

/** Makes the function that posts to a callback before anything is delivered to it. */
export function createPostToCallback(outgoing: Outgoing, userAgent: string): PostToCallback {
  return async ({ url, headers, body, owner }) => {
    const common = { 'content-type': 'application/json', 'user-agent': userAgent };
    try {
      const answer = await outgoing.open({ url, method: 'POST', headers: { ...common, ...headers }, body, timeoutMs, maxBytes, owner });
      return { status: answer.status, text: await answer.text() };
    } catch (error) {
      if (!(error instanceof OutgoingError)) throw error;
      return { failure: failures[error.failure] ?? 'connection_refused' };
    }
  };
}
