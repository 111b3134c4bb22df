import type { Fault } from '../../../kit/web/app/transport.ts';
import { Callout } from '../../../kit/web/components/feedback.tsx';

interface NotStartedProps {
  /** What was not started, with its article. */
  what: string;
  error: Error | null;
  faults: readonly Fault[];
  /** Whether a field shows its own fault. */
  isShown: (field: string) => boolean;
}

/** The reasons why a test was not started that no field shows. */
export function NotStarted({ what, error, faults, isShown }: NotStartedProps) {
  const unshown = faults.filter(({ field }) => !isShown(field));
  if (error === null || (faults.length > 0 && unshown.length === 0)) return null;
  return (
    <Callout tone="bad" alert title={`${what} was not started.`}>
      {unshown.length > 0 ? unshown.map(({ field, detail }) => <p key={field}>{detail}</p>) : error.message}
    </Callout>
  );
}
