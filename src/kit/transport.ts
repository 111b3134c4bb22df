/** An HTTP request as a transport sends it. */
export interface TransportRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** An answer whose body has not been read. */
export interface TransportAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body. */
  text(): Promise<string>;
  /** The body as it comes, for streams. */
  chunks(): AsyncIterable<string>;
}

/** Sends a request. Follows no redirect: a key goes only where it was meant to go. Rejects with the fault of the network. */
export type Transport = (request: TransportRequest) => Promise<TransportAnswer>;

/** A transport by the `fetch` of whatever runs the client. */
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
