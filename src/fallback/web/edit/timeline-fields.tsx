import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';
import { maxRate, maxTimelineSeconds } from '../../model/timeline.ts';
import { RowFields } from './row-fields.tsx';
import { emptyOutage, type OutageDraft, type TimelineDraft } from './timeline-draft.ts';

interface TimelineFieldsProps {
  timeline: TimelineDraft;
  providers: readonly string[];
  onChange: (timeline: TimelineDraft) => void;
  /** The fault of a field, by dotted path. */
  faultOf: (field: string) => string | undefined;
}

const conditionOptions = conditions.map((value) => ({ value, label: words(value) }));
const number = { type: 'number', inputMode: 'numeric', min: 0 } as const;

/** The fields of a timeline: how often prompts are sent, for how long, and the outages. */
export function TimelineFields({ timeline, providers, onChange, faultOf }: TimelineFieldsProps) {
  const change = (changes: Partial<TimelineDraft>) => onChange({ ...timeline, ...changes });
  const bound = bind(timeline, change, (name) => faultOf(`timeline.${name}`));
  return (
    <>
      <Fields>
        <TextField label="Prompts a minute" {...number} max={maxRate} {...bound('rate_per_minute')} />
        <TextField label="Duration" unit="s" {...number} max={maxTimelineSeconds} {...bound('seconds')} />
      </Fields>
      <RowFields<OutageDraft>
        legend="Outages"
        what="outage"
        rows={timeline.outages}
        empty={() => emptyOutage(providers[0]!)}
        onChange={(outages) => change({ outages })}
        faultOf={(row, name) => faultOf(`timeline.outages.${row}.${name}`)}
      >
        {(outage) => (
          <>
            <SelectField label="Provider" options={providers} {...outage('provider')} />
            <SelectField label="Fails with" options={conditionOptions} {...outage('condition')} />
            <TextField label="From" unit="s" {...number} {...outage('from_s')} />
            <TextField label="To" unit="s" {...number} {...outage('to_s')} />
            <TextField label="Retry-After" unit="ms" {...number} {...outage('retry_after_ms')} />
          </>
        )}
      </RowFields>
    </>
  );
}
