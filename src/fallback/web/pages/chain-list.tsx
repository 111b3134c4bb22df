import { Copy, Ellipsis, FileInput, Pencil, Plus, Search, Trash2 } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';

import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { Badge, Callout, Empty, Skeleton } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Menu } from '../../../kit/web/components/menu.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { counted, moment } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import { useDelete, useHidden } from '../data/deletions.ts';
import { useChains, useMayWrite } from '../data/queries.ts';
import { ProviderPath } from '../parts/provider-path.tsx';
import { useTitle } from '../parts/title.ts';
import styles from './chain-list.module.css';

/** Whether a chain has the text in its name, its description or one of its providers. */
function matches({ name, description, providers }: Chain, text: string): boolean {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const words = [name, description ?? '', ...providers.flatMap((provider) => [provider.name, provider.model_id])].join(' ').toLowerCase();
  return wanted.every((word) => words.includes(word));
}

/** All chains, with search. */
export function ChainList() {
  useTitle('Chains');
  const chains = useChains();
  const mayWrite = useMayWrite();
  const hidden = useHidden();
  const [params, setParams] = useSearchParams();
  const [text, setText] = useState(params.get('q') ?? '');
  const wanted = useDeferredValue(text);

  const all = chains.data?.filter(({ id }) => !hidden.includes(id));
  const shown = all?.filter((chain) => matches(chain, wanted));
  const search = (value: string) => {
    setText(value);
    setParams(value === '' ? {} : { q: value }, { replace: true });
  };

  return (
    <>
      <PageHeader
        title="Chains"
        subtitle={all === undefined ? ' ' : counted(all.length, 'chain')}
        actions={
          mayWrite ? (
            <>
              <LinkButton to="/import" icon={FileInput}>
                Import
              </LinkButton>
              <LinkButton to="/chains/new" look="primary" icon={Plus}>
                New chain
              </LinkButton>
            </>
          ) : undefined
        }
      />
      {chains.isError && all === undefined ? (
        <Callout
          tone="bad"
          alert
          title="The chains could not be loaded."
          actions={<Button onClick={() => void chains.refetch()}>Try again</Button>}
        >
          {chains.error.message}
        </Callout>
      ) : null}
      {all === undefined && !chains.isError ? <Skeleton lines={6} height="3rem" /> : null}
      {all?.length === 0 ? <NoChains mayWrite={mayWrite} /> : null}
      {all !== undefined && all.length > 0 ? (
        <Panel flush>
          <search className={styles.search}>
            <Search size={15} aria-hidden="true" />
            <input
              type="search"
              aria-label="Search chains"
              placeholder="Search by chain, provider or model"
              value={text}
              onChange={(event) => search(event.target.value)}
            />
          </search>
          <p className="visually-hidden" role="status">
            {wanted === '' ? '' : `${counted(shown!.length, 'chain')} found`}
          </p>
          {shown!.length === 0 ? (
            <Empty title="No chain has these words" actions={<Button onClick={() => search('')}>Clear the search</Button>} />
          ) : (
            <ChainTable chains={shown!} mayWrite={mayWrite} />
          )}
        </Panel>
      ) : null}
    </>
  );
}

function ChainTable({ chains, mayWrite }: { chains: readonly Chain[]; mayWrite: boolean }) {
  return (
    <Table
      label="Chains"
      rows={chains}
      keyOf={({ id }) => id}
      columns={[
        {
          name: 'Chain',
          cell: ({ id, name, description }) => (
            <div className={styles.name}>
              <Link to={`/chains/${id}`}>{name}</Link>
              {description === null ? null : <p>{description}</p>}
            </div>
          ),
        },
        { name: 'Providers, in order', cell: ({ providers }) => <ProviderPath providers={providers} /> },
        { name: 'Rules', number: true, cell: ({ fallback_rules }) => fallback_rules.length },
        {
          name: 'Warnings',
          cell: ({ warnings }) =>
            warnings.length === 0 ? <span className={styles.none}>none</span> : <Badge tone="warn">{warnings.length}</Badge>,
        },
        { name: 'Changed', muted: true, cell: ({ updated_at }) => <span className={styles.time}>{moment(updated_at)}</span> },
        ...(mayWrite ? [{ name: 'Actions', nameHidden: true, cell: (chain: Chain) => <ChainMenu chain={chain} /> }] : []),
      ]}
    />
  );
}

function ChainMenu({ chain }: { chain: Chain }) {
  const navigate = useNavigate();
  const remove = useDelete();
  return (
    <Menu
      label={`Actions for ${chain.name}`}
      icon={Ellipsis}
      entries={[
        { label: 'Edit', icon: Pencil, onSelect: () => void navigate(`/chains/${chain.id}/edit`) },
        { label: 'Duplicate', icon: Copy, onSelect: () => void navigate(`/chains/new?from=${chain.id}`) },
        { label: 'Delete', icon: Trash2, danger: true, onSelect: () => remove(chain) },
      ]}
    />
  );
}

function NoChains({ mayWrite }: { mayWrite: boolean }) {
  return (
    <Panel>
      <Empty
        title="No chains yet"
        actions={
          mayWrite ? (
            <>
              <LinkButton to="/chains/new" look="primary" icon={Plus}>
                New chain
              </LinkButton>
              <LinkButton to="/import" icon={FileInput}>
                Import one
              </LinkButton>
            </>
          ) : undefined
        }
      >
        A chain lists model providers in order, with rules for what happens when one fails. Once it is here it can be explained, tested and
        exported.
      </Empty>
    </Panel>
  );
}
