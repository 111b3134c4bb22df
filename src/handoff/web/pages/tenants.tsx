import { useState } from 'react';
import { Link, useNavigate } from 'react-router';

import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { count, counted } from '../../../kit/web/format.ts';
import type { HandoffClient } from '../../client/client.ts';
import type { Tier } from '../../model/common.ts';
import { tiers } from '../../model/constants.ts';
import type { Tenant, TenantPatch } from '../../model/tenant.ts';
import { useTenant, useTenants } from '../data/queries.ts';
import { FormDialog, NewItem } from '../parts/form-dialog.tsx';
import { Name, TimeSince } from '../parts/texts.tsx';
import { Keys } from './keys.tsx';

/** A tenant in a form. An empty number of packets or of requests is that of the tier; an empty number of keys is not changed. */
interface Draft {
  name: string;
  tier: Tier;
  perDay: string;
  perHour: string;
  maxKeys: string;
}

const patchOf = ({ name, tier, perDay, perHour, maxKeys }: Draft): TenantPatch & { name: string } => ({
  name,
  tier,
  handoffs_per_day: perDay === '' ? null : Number(perDay),
  requests_per_hour: perHour === '' ? null : Number(perHour),
  ...(maxKeys === '' ? {} : { max_api_keys: Number(maxKeys) }),
});

/** All tenants, for admin keys. */
export function Tenants() {
  useTitle('Tenants');
  const tenants = useTenants();
  return (
    <>
      <PageHeader
        title="Tenants"
        actions={
          <NewItem label="New tenant">
            {(close) => (
              <TenantForm title="New tenant" submit="Create" onClose={close} send={(client, body) => client.createTenant({ body })} />
            )}
          </NewItem>
        }
      />
      <Panel flush>
        <LoadedTable
          query={tenants}
          stacks
          label="Tenants"
          keyOf={({ id }) => id}
          columns={[
            {
              name: 'Tenant',
              by: ({ name }) => name,
              cell: ({ id, name }) => (
                <Link to={`/tenants/${id}`}>
                  <Name>{name}</Name>
                </Link>
              ),
            },
            { name: 'Tier', by: ({ tier }) => tiers.indexOf(tier), cell: ({ tier }) => tier },
            {
              name: 'Packets a day',
              by: ({ handoffs_per_day }) => handoffs_per_day,
              number: true,
              cell: ({ handoffs_per_day: most }) => (most === null ? 'tier default' : count(most)),
            },
            {
              name: 'Requests an hour',
              by: ({ requests_per_hour }) => requests_per_hour,
              number: true,
              cell: ({ requests_per_hour: most }) => (most === null ? 'tier default' : count(most)),
            },
            {
              name: 'Maximum keys',
              number: true,
              by: ({ max_api_keys }) => max_api_keys,
              cell: ({ max_api_keys }) => count(max_api_keys),
            },
            {
              name: 'Created',
              muted: true,
              by: ({ created_at }) => created_at,
              cell: ({ created_at }) => <TimeSince at={created_at} />,
            },
          ]}
        />
      </Panel>
    </>
  );
}

const limitsOf = ({ tier, handoffs_per_day: perDay, requests_per_hour: perHour, max_api_keys: maxKeys }: Tenant) =>
  `Tier ${tier}${perDay === null ? '' : `, ${counted(perDay, 'packet')} a day`}${perHour === null ? '' : `, ${counted(perHour, 'request')} an hour`}, at most ${counted(maxKeys, 'key')}`;

/** A tenant with its keys. */
export const TenantPage = byId(function TenantById({ id }) {
  useTitle('Tenant');
  const navigate = useNavigate();
  const tenant = useTenant(id);
  const [asked, setAsked] = useState<'change' | 'delete'>();
  const close = () => setAsked(undefined);
  return (
    <Load query={tenant} what="The tenant">
      {(found) => (
        <>
          <PageHeader
            title={<Name>{found.name}</Name>}
            subtitle={limitsOf(found)}
            actions={
              <>
                <Button onClick={() => setAsked('change')}>Change</Button>
                <Button onClick={() => setAsked('delete')}>Delete</Button>
              </>
            }
          />
          <Keys tenantId={id} />
          {asked === 'change' ? (
            <TenantForm
              title="Change the tenant"
              submit="Save"
              tenant={found}
              onClose={close}
              send={(client, body) => client.patchTenant({ params: { id }, body })}
            />
          ) : null}
          {asked === 'delete' ? (
            <FormDialog
              title="Delete the tenant"
              onClose={close}
              submit="Delete"
              danger
              send={(client) => client.deleteTenant({ params: { id } })}
              refreshes={['tenants']}
              onDone={() => void navigate('/tenants')}
            >
              <p>Its keys stop working now. Its data stays.</p>
            </FormDialog>
          ) : null}
        </>
      )}
    </Load>
  );
});

interface TenantFormProps {
  title: string;
  submit: string;
  tenant?: Tenant;
  onClose: () => void;
  send: (client: HandoffClient, body: ReturnType<typeof patchOf>) => Promise<Tenant>;
}

function TenantForm({ title, submit, tenant, onClose, send }: TenantFormProps) {
  const [draft, setDraft] = useState<Draft>({
    name: tenant?.name ?? '',
    tier: tenant?.tier ?? tiers[0],
    perDay: String(tenant?.handoffs_per_day ?? ''),
    perHour: String(tenant?.requests_per_hour ?? ''),
    maxKeys: tenant === undefined ? '' : String(tenant.max_api_keys),
  });
  const bound = bind(draft, (changes) => setDraft({ ...draft, ...changes }));
  return (
    <FormDialog title={title} onClose={onClose} submit={submit} send={(client) => send(client, patchOf(draft))} refreshes={['tenants']}>
      <TextField label="Name" {...bound('name')} />
      <SelectField label="Tier" options={tiers} {...bound('tier')} />
      <TextField label="Packets a day (optional)" hint="Empty: the default of the tier." type="number" min={0} {...bound('perDay')} />
      <TextField label="Requests an hour (optional)" hint="Empty: the default of the tier." type="number" min={1} {...bound('perHour')} />
      <TextField label="Maximum keys (optional)" type="number" min={0} {...bound('maxKeys')} />
    </FormDialog>
  );
}
