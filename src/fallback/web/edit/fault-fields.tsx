import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';
import { RowFields } from './row-fields.tsx';
import { emptyFault, type FaultDraft, faultNumbers } from './test-draft.ts';

interface FaultFieldsProps {
  faults: readonly FaultDraft[];
  providers: readonly string[];
  onChange: (faults: FaultDraft[]) => void;
  /** The fault of a field, by dotted path. */
  faultOf: (field: string) => string | undefined;
}

const conditionOptions = [{ value: '', label: 'only slow' }, ...conditions.map((value) => ({ value, label: words(value) }))];

/** The fields of a test's own faults. */
export function FaultFields({ faults, providers, onChange, faultOf }: FaultFieldsProps) {
  return (
    <RowFields<FaultDraft>
      legend="Faults, applied to every prompt"
      what="fault"
      rows={faults}
      empty={() => emptyFault(providers[0]!)}
      onChange={onChange}
      faultOf={(row, name) => faultOf(`faults.${row}.${name}`)}
    >
      {(bound) => (
        <>
          <SelectField label="Provider" options={providers} {...bound('provider')} />
          <SelectField label="Fails with" options={conditionOptions} {...bound('condition')} />
          {faultNumbers.map(({ name, ...field }) => (
            <TextField key={name} {...field} type="number" min={0} step="any" {...bound(name)} />
          ))}
        </>
      )}
    </RowFields>
  );
}
