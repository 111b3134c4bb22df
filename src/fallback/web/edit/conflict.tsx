import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock } from '../../../kit/web/components/code.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Columns } from '../../../kit/web/components/layout.tsx';
import { moment, words } from '../../../kit/web/format.ts';
import type { Chain, ChainRequest } from '../../model/chain.ts';
import { draftOf, requestOf } from './draft.ts';

interface ConflictProps {
  mine: ChainRequest;
  theirs: Chain;
  onKeepTheirs: (theirs: Chain) => void;
  onSaveMine: (theirs: Chain) => void;
  onClose: () => void;
}

/** Shows both versions of a chain that somebody else has changed, to choose one. */
export function Conflict({ mine, theirs, onKeepTheirs, onSaveMine, onClose }: ConflictProps) {
  const other = requestOf(draftOf(theirs));
  const names = (Object.keys(mine) as (keyof ChainRequest)[]).filter((name) => JSON.stringify(mine[name]) !== JSON.stringify(other[name]));
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title="The chain has changed"
      actions={
        <>
          <Button onClick={onClose}>Continue editing</Button>
          <Button onClick={() => onKeepTheirs(theirs)}>Take the other version</Button>
          <Button look="danger" onClick={() => onSaveMine(theirs)}>
            Overwrite with mine
          </Button>
        </>
      }
    >
      <p>
        Version {theirs.version} was saved {moment(theirs.updated_at)}, after you opened the chain.{' '}
        {names.length === 0 ? 'It is the same as yours.' : `The versions differ in: ${names.map(words).join(', ')}.`}
      </p>
      <Columns min="20rem">
        <section className="stack">
          <h2>Yours, not saved</h2>
          <CodeBlock label="Your version" text={shown(mine, names)} />
        </section>
        <section className="stack">
          <h2>Version {theirs.version}</h2>
          <CodeBlock label="The saved version" text={shown(other, names)} />
        </section>
      </Columns>
    </Dialog>
  );
}

/** The parts of a chain in which the versions differ. */
function shown(chain: ChainRequest, names: readonly (keyof ChainRequest)[]): string {
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, chain[name]])), null, 2);
}
