import { useQueryClient } from '@tanstack/react-query';
import { createParser } from 'eventsource-parser';
import { useEffect, useState } from 'react';

import type { TestProgress } from '../../model/test.ts';
import { currentKey } from './session.ts';

/** How far a running test is, told by the service; undefined until it says so. Where the stream is cut, polling goes on. */
export function useProgress(id: string, running: boolean): TestProgress | undefined {
  const [progress, setProgress] = useState<TestProgress>();
  const client = useQueryClient();
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    const parser = createParser({
      onEvent({ event, data }) {
        if (event !== 'progress' && event !== 'end') return;
        setProgress(JSON.parse(data) as TestProgress);
        if (event === 'end') void client.invalidateQueries({ queryKey: ['results'] });
      },
    });
    void follow(id, stop.signal, (text) => parser.feed(text)).catch(() => {
      // The result is polled as well, so a stream that can't be had or is cut costs two seconds and nothing else.
    });
    return () => stop.abort();
  }, [id, running, client]);
  return running ? progress : undefined;
}

/** Reads the events with the key in a header: an EventSource could only send it in the address. */
async function follow(id: string, signal: AbortSignal, take: (text: string) => void): Promise<void> {
  const key = currentKey();
  const answer = await fetch(`/test-results/${id}/events`, { headers: key === null ? {} : { 'x-api-key': key }, signal });
  if (!answer.ok || answer.body === null) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    take(value);
  }
}
