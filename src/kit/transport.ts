/** An HTTP request as a transport sends it. */
export interface TransportRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** A response whose body has not been read. */
export interface TransportAnswer {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body in chunks as they arrive. */
  chunks(): AsyncIterable<string>;
}

/** Sends a request. Follows no redirects, so that a key is not sent to another host. Rejects with the network error. */
export type Transport = (request: TransportRequest) => Promise<TransportAnswer>;

/** A transport over the global `fetch`. */
export const fetchTransport: Transport = async ({ method, url, headers, body, signal }) => {
  const response = await fetch(url, { method, headers, signal, redirect: 'manual', ...(body === undefined ? {} : { body }) });
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    chunks: () => chunksOf(response),
  };
};

/** The body of a response by `fetch` in chunks of text. Not all browsers support async iteration of streams. */
export async function* chunksOf({ body }: Response): AsyncGenerator<string, void, undefined> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // A reader that stops early ends the request.
    reader.cancel().catch(() => undefined);
  }
}
