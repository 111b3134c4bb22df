import type { ReactNode } from 'react';

import { Button, LinkButton } from '../components/button.tsx';
import { Callout, Empty, Skeleton } from '../components/feedback.tsx';
import { hasStatus } from './transport.ts';

/** What is loaded, as a query has it. */
export interface Loading<T> {
  data: T | undefined;
  error: Error | null;
  refetch(): unknown;
}

interface LoadProps<T> {
  query: Loading<T>;
  /** The name of the loaded thing, as the subject of a sentence: `The document`. */
  what: string;
  /** Where to go if it was not found. */
  back?: { to: string; label: string };
  lines?: number;
  height?: string;
  children: (value: T) => ReactNode;
}

const start = { to: '/', label: 'Go to the start' };

/** A title such as `Document not found` for `The document`. */
function notFound(what: string): string {
  const noun = what.replace(/^The /, '');
  return `${noun.charAt(0).toUpperCase()}${noun.slice(1)} not found`;
}

/** Renders loaded data, placeholder lines while loading, and a message on failure. */
export function Load<T>({ query, lines = 6, height = '2.5rem', what, back = start, children }: LoadProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error === null) return <Skeleton lines={lines} height={height} />;
  if (hasStatus(query.error, 404)) {
    return (
      <Empty level={1} title={notFound(what)} actions={<LinkButton to={back.to}>{back.label}</LinkButton>}>
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
