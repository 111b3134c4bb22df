import { Plus } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { useToast } from '../../../kit/web/components/toasts.tsx';
import { counted } from '../../../kit/web/format.ts';
import { type ChainDraft, changed, emptyProvider, moved, type ProviderDraft, withoutProvider, withProviders } from './draft.ts';
import { ProviderFields } from './provider-fields.tsx';
import { Sortable } from './sortable.tsx';

/** The properties of a part of the editor: the draft and its changes. */
export interface PartProps {
  draft: ChainDraft;
  onChange(change: (draft: ChainDraft) => ChainDraft): void;
  /** The fault of a field at a place, if it is to be shown. */
  faultOf(field: string, place: string): string | undefined;
  onLeave(place: string): void;
}

const nameOf = ({ name }: ProviderDraft, index: number) => `provider ${name === '' ? index + 1 : name}`;

/** The providers of a chain, in order. */
export function ProviderPanel({ draft, onChange, faultOf, onLeave }: PartProps) {
  const toast = useToast();
  const { providers } = draft;
  function remove({ key, name }: ProviderDraft): void {
    const lost = draft.rules.length - withoutProvider(draft, key).rules.length;
    if (lost > 0) toast({ text: `${counted(lost, 'rule')} for ${name} alone ${lost === 1 ? 'was' : 'were'} also removed.`, tone: 'warn' });
    onChange((before) => withoutProvider(before, key));
  }
  return (
    <Panel
      title="Providers, in the order they are tried"
      actions={
        <Button icon={Plus} onClick={() => onChange((before) => withProviders(before, [...before.providers, emptyProvider()]))}>
          Add a provider
        </Button>
      }
    >
      <Sortable
        items={providers}
        nameOf={nameOf}
        onMove={(from, to) => onChange((before) => withProviders(before, moved(before.providers, from, to)))}
      >
        {(provider, index) => (
          <ProviderFields
            label={nameOf(provider, index)}
            provider={provider}
            faultOf={(field) => faultOf(`providers.${index}.${field}`, `${provider.key}.${field}`)}
            onLeave={(field) => onLeave(`${provider.key}.${field}`)}
            onChange={(changes) => onChange((before) => ({ ...before, providers: changed(before.providers, provider.key, changes) }))}
            onRemove={providers.length === 1 ? undefined : () => remove(provider)}
          />
        )}
      </Sortable>
    </Panel>
  );
}
