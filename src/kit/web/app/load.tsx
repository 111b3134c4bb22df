import type { ReactNode } from 'react';

import { Button, LinkButton } from '../components/button.tsx';
import { Callout, Empty, Skeleton } from '../components/feedback.tsx';
import { isRefusal } from './transport.ts';

interface Loading<T> {
  data: T | undefined;
  error: Error | null;
  refetch(): unknown;
}

interface LoadProps<T> {
  query: Loading<T>;
  /** The name of the loaded thing, as the subject of a sentence: `The chain`. */
  what: string;
  lines?: number;
  height?: string;
  children(value: T): ReactNode;
}

/** Renders loaded data, placeholder lines while loading, and a message on failure. */
export function Load<T>({ query, lines = 6, height = '2.5rem', what, children }: LoadProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error === null) return <Skeleton lines={lines} height={height} />;
  if (isRefusal(query.error, 404)) {
    return (
      <Empty level={1} title={`${what} was not found`} actions={<LinkButton to="/">Go to the start</LinkButton>}>
        It may have been deleted, or the address is mistyped.
      </Empty>
    );
  }
  return (
    <Callout tone="bad" alert title={`${what} could not be loaded.`} actions={<Button onClick={() => query.refetch()}>Try again</Button>}>
      {query.error.message}
    </Callout>
  );
}
