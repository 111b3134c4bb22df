import { useEffect, useState } from 'react';
import { queryClient } from '../../../kit/web/app/queries.ts';
import type { TestProgress } from '../../model/test.ts';
import { api } from './api.ts';
import { useFigures, useResult } from './queries.ts';

/**
 * A result. While its test runs it has no prompts, and `progress` is the latest event of the stream; the other figures are
 * polled, more often while the stream is disconnected. The prompts are read once, when the test has ended.
 */
export function useFollowedResult(id: string) {
  const [progress, setProgress] = useState<TestProgress>();
  const figures = useFigures(id, true, progress === undefined ? 2000 : 10_000);
  const running = figures.data?.status === 'running';
  const whole = useResult(id, figures.data !== undefined && !running);
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
  return { result: whole.data?.status === figures.data?.status || whole.error !== null ? whole : figures, progress };
}

/** Reports the progress of a test until its end. A broken stream is reconnected; meanwhile `undefined` is reported. */
async function follow(id: string, signal: AbortSignal, onProgress: (progress: TestProgress | undefined) => void): Promise<void> {
  const client = api({
    retries: Number.POSITIVE_INFINITY,
    onStep: ({ kind }) => {
      if (kind === 'wait') onProgress(undefined);
    },
  });
  for await (const { data } of client.testEvents({ params: { id }, signal })) onProgress(data);
}
