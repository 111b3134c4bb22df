import { Copy, Ellipsis, FileInput, Pencil, Plus, Trash2 } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { CodeBlock } from '../../../kit/web/components/code.tsx';
import { Badge, Empty } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Menu } from '../../../kit/web/components/menu.tsx';
import { SearchField } from '../../../kit/web/components/search.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { counted, moment } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import { useDelete, useHidden } from '../data/deletions.ts';
import { useChains, useMayWrite } from '../data/queries.ts';
import { distinction } from '../parts/chain-label.ts';
import { ProviderPath } from '../parts/provider-path.tsx';
import { rehearsalExample } from '../parts/rehearsal-example.ts';
import styles from './chain-list.module.css';

/** Whether the name, the description or a provider of a chain contains the text. */
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
  const all = chains.data?.filter(({ id }) => !hidden.includes(id));
  return (
    <>
      <PageHeader
        title="Chains"
        subtitle={all === undefined ? ' ' : counted(all.length, 'chain')}
        actions={mayWrite ? <WaysToCreate /> : undefined}
      />
      <Load query={{ ...chains, data: all }} what="The chains" height="3rem">
        {(found) =>
          found.length > 0 ? (
            <FoundChains chains={found} mayWrite={mayWrite} />
          ) : (
            <>
              <Panel title="What a rehearsal of a chain shows: what the gateway really does when a provider fails">
                <CodeBlock text={rehearsalExample} label="A rehearsal" />
              </Panel>
              <Panel>
                <Empty title="No chains yet" actions={mayWrite ? <WaysToCreate /> : undefined}>
                  A chain lists model providers in order, with rules for what happens when one fails. A stored chain can be explained,
                  tested and exported.
                </Empty>
              </Panel>
            </>
          )
        }
      </Load>
    </>
  );
}

function FoundChains({ chains, mayWrite }: { chains: readonly Chain[]; mayWrite: boolean }) {
  const [params, setParams] = useSearchParams();
  const [text, setText] = useState(params.get('q') ?? '');
  const wanted = useDeferredValue(text);
  const found = chains.filter((chain) => matches(chain, wanted));
  const search = (value: string) => {
    setText(value);
    setParams(value === '' ? {} : { q: value }, { replace: true });
  };
  return (
    <Panel flush>
      <SearchField label="Search chains" placeholder="Search by chain, provider or model" value={text} onChange={search} />
      <p className="visually-hidden" role="status">
        {wanted === '' ? '' : `${counted(found.length, 'chain')} found`}
      </p>
      {found.length === 0 ? (
        <Empty title="No chain matches the search" actions={<Button onClick={() => search('')}>Clear the search</Button>} />
      ) : (
        <ChainTable chains={found} all={chains} mayWrite={mayWrite} />
      )}
    </Panel>
  );
}

function ChainTable({ chains, all, mayWrite }: { chains: readonly Chain[]; all: readonly Chain[]; mayWrite: boolean }) {
  return (
    <Table
      label="Chains"
      stacks
      rows={chains}
      keyOf={({ id }) => id}
      columns={[
        {
          name: 'Chain',
          by: ({ name }) => name,
          cell: ({ id, name, description }) => (
            <div className={styles.name}>
              <Link to={`/chains/${id}`}>{name}</Link> <code className="muted">{distinction({ id, name }, all)}</code>
              {description === null ? null : <p>{description}</p>}
            </div>
          ),
        },
        { name: 'Providers, in order', cell: ({ providers }) => <ProviderPath providers={providers} /> },
        {
          name: 'Rules',
          number: true,
          by: ({ fallback_rules }) => fallback_rules.length,
          cell: ({ fallback_rules }) => fallback_rules.length,
        },
        {
          name: 'Warnings',
          cell: ({ warnings }) =>
            warnings.length === 0 ? <span className="muted">none</span> : <Badge tone="warn">{warnings.length}</Badge>,
        },
        {
          name: 'Changed',
          by: ({ updated_at }) => updated_at,
          muted: true,
          cell: ({ updated_at }) => <span className={styles.time}>{moment(updated_at)}</span>,
        },
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

function WaysToCreate() {
  return (
    <>
      <LinkButton to="/import" icon={FileInput}>
        Import
      </LinkButton>
      <LinkButton to="/chains/new" look="primary" icon={Plus}>
        New chain
      </LinkButton>
    </>
  );
}
