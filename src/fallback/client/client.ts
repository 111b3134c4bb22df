import { type Client, createClient } from '../../kit/client.ts';
import { Connection, type ConnectionOptions, eventJson } from '../../kit/connection.ts';
import { keyHeader } from '../../kit/header.ts';
import type { routes } from '../model/api.ts';
import type { Imported, ImportPreview } from '../model/export.ts';
import type { TestPlan, TestProgress, TestResult } from '../model/test.ts';
import { operations } from './operations.ts';

export interface FallbackClientOptions extends Omit<ConnectionOptions, 'headers'> {
  /** The service's address: `http://localhost:8000`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An event of a test. The last one is `end`, with the final status and verdict. */
export interface TestEvent {
  readonly type: 'progress' | 'end';
  readonly data: TestProgress;
}

type RunTest = Client<typeof routes>['runTest'];
type ImportInput = Parameters<Client<typeof routes>['importChain']>[0];
type RunTestInput = Parameters<RunTest>[0];

/** A client with a method for each route; `testEvents` yields the events. */
export type FallbackClient = Omit<Client<typeof routes>, 'runTest' | 'testEvents' | 'importChain'> & {
  /** Imports a chain; with `dry_run` it only answers what would be stored. */
  importChain: {
    (input: ImportInput & { query: { dry_run: true } }): Promise<ImportPreview>;
    (input: ImportInput & { query?: { dry_run?: false } }): Promise<Imported>;
    withResponse: Client<typeof routes>['importChain']['withResponse'];
  };
  /** Runs a test; with `dry_run` it only answers what the test would do. */
  runTest: {
    (input: RunTestInput & { query: { dry_run: true } }): Promise<TestPlan>;
    (input: RunTestInput & { query?: { dry_run?: false } }): Promise<TestResult>;
    withResponse: RunTest['withResponse'];
  };
  /** The events of a running test up to its end. Rejects with ApiError if the service refuses, or with the signal's reason. */
  testEvents(request: { params: { id: string }; signal?: AbortSignal }): AsyncGenerator<TestEvent, void, undefined>;
};

/** A client of the fallback service: `await createFallbackClient({ baseUrl }).listChains()`. */
export function createFallbackClient({ apiKey, headers, ...options }: FallbackClientOptions): FallbackClient {
  const connection = new Connection({ ...options, headers: { ...keyHeader(apiKey), ...headers } });
  const client = createClient<typeof routes>(operations, connection);
  return {
    ...client,
    importChain: client.importChain as FallbackClient['importChain'],
    runTest: client.runTest as FallbackClient['runTest'],
    async *testEvents({ params: { id }, signal }) {
      const path = operations.testEvents.path.replace('{id}', encodeURIComponent(id));
      for await (const { type, data } of connection.stream({ path, signal })) {
        if (type === 'progress' || type === 'end') yield { type, data: eventJson(data) } as TestEvent;
        if (type === 'end') return;
      }
    },
  };
}
