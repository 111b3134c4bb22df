import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { count } from '../../../kit/web/format.ts';
import type { Tier } from '../../model/common.ts';
import { tiers } from '../../model/constants.ts';
import type { Tenant, TenantPatch } from '../../model/tenant.ts';
import { useAnswer, useWrite } from '../data/queries.ts';
import { FormDialog, NewItem } from '../parts/form-dialog.tsx';
import { Ago, Name } from '../parts/texts.tsx';
import { Keys } from './keys.tsx';

/** A tenant in a form. Empty numbers mean those of the tier. */
interface Draft {
  name: string;
  tier: string;
  perDay: string;
  maxKeys: string;
}

const patchOf = ({ name, tier, perDay, maxKeys }: Draft): TenantPatch & { name: string } => ({
  name,
  tier: tier as Tier,
  handoffs_per_day: perDay === '' ? null : Number(perDay),
  ...(maxKeys === '' ? {} : { max_api_keys: Number(maxKeys) }),
});

/** All tenants, for admin keys. */
export function Tenants() {
  useTitle('Tenants');
  const tenants = useAnswer(['tenants'], (client, signal) => client.listTenants({ signal }));
  const create = useWrite((client, draft: Draft) => client.createTenant({ body: patchOf(draft) }), 'tenants');
  return (
    <>
      <PageHeader
        title="Tenants"
        actions={
          <NewItem label="New tenant">
            {(close) => (
              <TenantForm
                title="New tenant"
                submit="Create"
                request={create}
                onClose={close}
                onSubmit={(draft) => create.mutate(draft, { onSuccess: close })}
              />
            )}
          </NewItem>
        }
      />
      <Panel flush>
        <Load query={tenants} what="The tenants">
          {(found) => (
            <Table
              stacks
              label="Tenants"
              rows={found}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Tenant',
                  cell: ({ id, name }) => (
                    <Link to={`/tenants/${id}`}>
                      <Name>{name}</Name>
                    </Link>
                  ),
                },
                { name: 'Tier', cell: ({ tier }) => tier },
                {
                  name: 'Packets a day',
                  number: true,
                  cell: ({ handoffs_per_day: most }) => (most === null ? 'as the tier' : count(most)),
                },
                { name: 'Most keys', number: true, cell: ({ max_api_keys }) => count(max_api_keys) },
                { name: 'Created', muted: true, cell: ({ created_at }) => <Ago at={created_at} /> },
              ]}
            />
          )}
        </Load>
      </Panel>
    </>
  );
}

/** A tenant with its keys. */
export function TenantPage() {
  const { id = '' } = useParams();
  useTitle('Tenant');
  const navigate = useNavigate();
  const tenant = useAnswer(['tenants', id], (client, signal) => client.getTenant({ params: { id }, signal }));
  const [asked, setAsked] = useState<'change' | 'delete'>();
  const change = useWrite((client, draft: Draft) => client.patchTenant({ params: { id }, body: patchOf(draft) }), 'tenants');
  const remove = useWrite((client, _: undefined) => client.deleteTenant({ params: { id } }), 'tenants');
  const close = () => setAsked(undefined);
  return (
    <Load query={tenant} what="The tenant">
      {(found) => (
        <>
          <PageHeader
            title={<Name>{found.name}</Name>}
            subtitle={`Tier ${found.tier}`}
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
              request={change}
              onClose={close}
              onSubmit={(draft) => change.mutate(draft, { onSuccess: close })}
            />
          ) : null}
          <FormDialog
            open={asked === 'delete'}
            title="Delete the tenant"
            onClose={close}
            submit="Delete"
            danger
            request={remove}
            onSubmit={() => remove.mutate(undefined, { onSuccess: () => void navigate('/tenants') })}
          >
            <p>Its keys are refused from now on. Its data stays.</p>
          </FormDialog>
        </>
      )}
    </Load>
  );
}

interface TenantFormProps {
  title: string;
  submit: string;
  tenant?: Tenant;
  request: { error: Error | null; isPending: boolean };
  onClose(): void;
  onSubmit(draft: Draft): void;
}

function TenantForm({ title, submit, tenant, request, onClose, onSubmit }: TenantFormProps) {
  const [draft, setDraft] = useState<Draft>({
    name: tenant?.name ?? '',
    tier: tenant?.tier ?? 'free',
    perDay: String(tenant?.handoffs_per_day ?? ''),
    maxKeys: tenant === undefined ? '' : String(tenant.max_api_keys),
  });
  const bound = bind(draft, (changes) => setDraft({ ...draft, ...changes }));
  return (
    <FormDialog open title={title} onClose={onClose} submit={submit} request={request} onSubmit={() => onSubmit(draft)}>
      <TextField label="Name" {...bound('name')} />
      <SelectField label="Tier" options={tiers} {...bound('tier')} />
      <TextField label="Packets a day (optional)" hint="Empty: as many as the tier has." type="number" min={0} {...bound('perDay')} />
      <TextField label="Most keys (optional)" type="number" min={0} {...bound('maxKeys')} />
    </FormDialog>
  );
}
