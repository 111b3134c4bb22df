import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

import type { TestProgress } from '../../model/test.ts';
import { api } from './api.ts';
import { useResult } from './queries.ts';

/**
 * A result. While its test runs, `progress` is what the service's stream told last: each step as it happens. Its details,
 * and everything while no stream stands, come with the result, which is polled.
 */
export function useFollowedResult(id: string) {
  const client = useQueryClient();
  const [progress, setProgress] = useState<TestProgress>();
  const result = useResult(id);
  const running = result.data?.status === 'running';
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    follow(id, stop.signal, setProgress).then(
      () => client.invalidateQueries({ queryKey: ['results'] }),
      // The page was left, or the service refused the stream; polling tells how the test goes on.
      () => undefined,
    );
    return () => {
      stop.abort();
      setProgress(undefined);
    };
  }, [id, running, client]);
  return { result, progress };
}

/** Tells of each step of a test until its end. A stream that is cut is taken up again; until then `undefined` is told. */
async function follow(id: string, signal: AbortSignal, tell: (progress: TestProgress | undefined) => void): Promise<void> {
  const client = api({
    retries: Number.POSITIVE_INFINITY,
    onNote: ({ kind }) => {
      if (kind === 'wait') tell(undefined);
    },
  });
  for await (const { data } of client.testEvents({ params: { id }, signal })) tell(data);
}
