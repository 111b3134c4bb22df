import { type Client, createClient } from '../../kit/client.ts';
import { type ConnectionOptions, createConnection } from '../../kit/connection.ts';
import type { routes } from '../model/api.ts';
import type { TestProgress } from '../model/test.ts';
import { operations } from './operations.ts';

export interface FallbackClientOptions extends Omit<ConnectionOptions, 'headers'> {
  /** Where the service is: `http://localhost:8000`. */
  readonly baseUrl: string;
  /** An API key, where the service asks for one. */
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How far a test is. `end` is the last of its events, with the status and the verdict it ended with. */
export interface TestEvent {
  readonly type: 'progress' | 'end';
  readonly data: TestProgress;
}

/** One method for each route; `testEvents` gives the events one by one. */
export type FallbackClient = Omit<Client<typeof routes>, 'testEvents'> & {
  /** The events of a running test up to its end. Rejects with ApiError when the service refuses, and with the signal's reason. */
  testEvents(request: { params: { id: string }; signal?: AbortSignal }): AsyncGenerator<TestEvent, void, undefined>;
};

/** A client of the fallback service: `await createFallbackClient({ baseUrl }).listChains()`. */
export function createFallbackClient({ apiKey, headers, ...options }: FallbackClientOptions): FallbackClient {
  const key = apiKey === undefined ? {} : { 'x-api-key': apiKey };
  const connection = createConnection({ ...options, headers: { ...key, ...headers } });
  return {
    ...createClient<typeof routes>(operations, connection),
    async *testEvents({ params: { id }, signal }) {
      const path = operations.testEvents.path.replace('{id}', encodeURIComponent(id));
      for await (const { type, data } of connection.stream({ path, signal })) {
        if (type === 'progress' || type === 'end') yield { type, data: JSON.parse(data) } as TestEvent;
        if (type === 'end') return;
      }
    },
  };
}
