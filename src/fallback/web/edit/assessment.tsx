import type { Fault } from '../../../kit/web/app/transport.ts';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { counted, durationText } from '../../../kit/web/format.ts';
import type { ChainCheck } from '../../model/routing.ts';
import { faultNotes, labelledNotes } from '../parts/labels.ts';

interface AssessmentProps {
  check: ChainCheck | undefined;
  faults: readonly Fault[];
  /** Whether saving was attempted; until then faults are only shown beside their fields. */
  tried: boolean;
}

/** The service's check of the edited chain: faults, or warnings and the worst case. */
export function Assessment({ check, faults, tried }: AssessmentProps) {
  return (
    <div role="status" aria-live="polite" className="stack">
      {tried ? <Notes tone="bad" title={`${counted(faults.length, 'field')} to correct`} notes={faultNotes(faults)} /> : null}
      {faults.length > 0 || check === undefined ? null : (
        <>
          <p className="muted">
            Worst case: {counted(check.worst_case.attempts, 'attempt')} and {durationText(check.worst_case.latency_ms)} for one prompt
            {check.worst_case.first_token_ms < check.worst_case.latency_ms
              ? `, ${durationText(check.worst_case.first_token_ms)} until the first content of a stream`
              : ''}
            .
          </p>
          <Notes tone="warn" title="Review these warnings" notes={labelledNotes(check.warnings)} />
        </>
      )}
    </div>
  );
}
