import { Plus } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import type { PartProps } from './chain-form.ts';
import { emptyProvider, moved, withProviders } from './draft.ts';
import { nameOf, ProviderFields } from './provider-fields.tsx';
import { Sortable } from './sortable.tsx';

/** The providers of a chain, in order. */
export function ProviderPanel(part: PartProps) {
  const { draft, onChange } = part;
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
        items={draft.providers}
        nameOf={nameOf}
        onMove={(from, to) => onChange((before) => withProviders(before, moved(before.providers, from, to)))}
      >
        {(provider, index) => <ProviderFields {...part} row={provider} index={index} />}
      </Sortable>
    </Panel>
  );
}
