import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

import type { TestProgress } from '../../model/test.ts';
import { api } from './api.ts';

/** How far a running test is, told by the service; undefined until it says so. Where the stream is cut, polling goes on. */
export function useProgress(id: string, running: boolean): TestProgress | undefined {
  const [progress, setProgress] = useState<TestProgress>();
  const client = useQueryClient();
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    const follow = async () => {
      for await (const { type, data } of api().testEvents({ params: { id }, signal: stop.signal })) {
        if (type === 'progress') setProgress(data);
        else void client.invalidateQueries({ queryKey: ['results'] });
      }
    };
    void follow().catch(() => {
      // The result is polled as well, so a stream that can't be had or is cut costs two seconds and nothing else.
    });
    return () => stop.abort();
  }, [id, running, client]);
  return running ? progress : undefined;
}
