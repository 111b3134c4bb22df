import { useEffect, useState } from 'react';
import { queryClient } from '../../../kit/web/app/queries.ts';
import type { TestProgress } from '../../model/test.ts';
import { api } from './api.ts';
import { useResult } from './queries.ts';

/**
 * A result. While its test runs, `progress` is the latest event of the stream. The details are polled with the result, as
 * is everything else while the stream is disconnected.
 */
export function useFollowedResult(id: string) {
  const [progress, setProgress] = useState<TestProgress>();
  const result = useResult(id);
  const running = result.data?.status === 'running';
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    follow(id, stop.signal, setProgress).then(
      () => queryClient.invalidateQueries({ queryKey: ['results'] }),
      // The page was left, or the service refused the stream. Polling continues.
      () => undefined,
    );
    return () => {
      stop.abort();
      setProgress(undefined);
    };
  }, [id, running]);
  return { result, progress };
}

/** Reports the progress of a test until its end. A broken stream is reconnected; meanwhile `undefined` is reported. */
async function follow(id: string, signal: AbortSignal, onProgress: (progress: TestProgress | undefined) => void): Promise<void> {
  const client = api({
    retries: Number.POSITIVE_INFINITY,
    onNote: ({ kind }) => {
      if (kind === 'wait') onProgress(undefined);
    },
  });
  for await (const { data } of client.testEvents({ params: { id }, signal })) onProgress(data);
}
