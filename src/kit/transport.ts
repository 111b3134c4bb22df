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
  /** The whole body. */
  text(): Promise<string>;
  /** The body in chunks as they arrive, for streams. */
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
    text: () => response.text(),
    async *chunks() {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) yield decoder.decode(chunk, { stream: true });
    },
  };
};
