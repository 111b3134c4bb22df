import { Copy, Ellipsis, Pencil, Play, Trash2 } from 'lucide-react';
import { Outlet, useNavigate, useOutletContext } from 'react-router';
import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { LinkButton } from '../../../kit/web/components/button.tsx';
import { PageHeader, PageTabs } from '../../../kit/web/components/layout.tsx';
import { Menu } from '../../../kit/web/components/menu.tsx';
import { moment } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import { useDelete } from '../data/deletions.ts';
import { useChain, useMayWrite } from '../data/queries.ts';

/** The chain of the current page. */
export const useCurrentChain = (): Chain => useOutletContext<Chain>();

/** The frame of a chain's pages. */
export const ChainPage = byId(function ChainById({ id }) {
  const chain = useChain(id);
  useTitle(chain.data?.name);
  return (
    <Load query={chain} what="The chain" back={{ to: '/chains', label: 'Back to chains' }}>
      {(found) => (
        <>
          <PageHeader
            title={found.name}
            subtitle={
              <>
                Version {found.version}, changed {moment(found.updated_at)}
              </>
            }
            actions={<Actions chain={found} />}
          />
          <PageTabs
            label="Chain"
            links={[
              { to: `/chains/${id}`, label: 'Overview' },
              { to: `/chains/${id}/what-if`, label: 'What happens if' },
              { to: `/chains/${id}/tests`, label: 'Tests' },
              { to: `/chains/${id}/rehearse`, label: 'Rehearse' },
              { to: `/chains/${id}/export`, label: 'Export' },
            ]}
          />
          <Outlet context={found} />
        </>
      )}
    </Load>
  );
});

function Actions({ chain }: { chain: Chain }) {
  const mayWrite = useMayWrite();
  const navigate = useNavigate();
  const remove = useDelete();
  if (!mayWrite) return null;
  return (
    <>
      <LinkButton to={`/chains/${chain.id}/edit`} icon={Pencil}>
        Edit
      </LinkButton>
      <LinkButton to={`/chains/${chain.id}/tests`} look="primary" icon={Play}>
        Test
      </LinkButton>
      <Menu
        label="More actions"
        icon={Ellipsis}
        entries={[
          { label: 'Duplicate', icon: Copy, onSelect: () => void navigate(`/chains/new?from=${chain.id}`) },
          {
            label: 'Delete',
            icon: Trash2,
            danger: true,
            onSelect() {
              remove(chain);
              void navigate('/chains');
            },
          },
        ]}
      />
    </>
  );
}
