import { useState } from 'react';

import { Load } from '../../../kit/web/app/load.tsx';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import type { Contract } from '../../model/contract.ts';
import { useContract } from '../data/queries.ts';
import styles from './contract.module.css';

/** A button with the version of an agent's contract, which shows the contract. */
export function ContractButton({ agentId, version }: { agentId: string; version: number }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button look="link" onClick={() => setOpen(true)}>
        Version {version}
      </Button>
      {open ? <ContractDialog agentId={agentId} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function ContractDialog({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const contract = useContract(agentId);
  return (
    <Dialog open onClose={onClose} title={`Contract of ${agentId}`} wide>
      <Load query={contract} what="The contract">
        {(found) => <ContractBody contract={found} />}
      </Load>
    </Dialog>
  );
}

function ContractBody({ contract: { version, description, examples, schema } }: { contract: Contract }) {
  return (
    <>
      <p>{description ?? 'The contract has no description.'}</p>
      {examples.map((example, index) => (
        <Json key={JSON.stringify(example)} value={example} name={examples.length === 1 ? 'Example' : `Example ${index + 1}`} />
      ))}
      <Json value={schema} name={`Schema, version ${version}`} />
    </>
  );
}

/** A JSON value with a heading, to be copied. */
function Json({ value, name }: { value: unknown; name: string }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <>
      <div className={styles.head}>
        <h2>{name}</h2>
        <CopyButton text={text} label={`Copy ${name.toLowerCase().replace(/,.*/, '')}`} />
      </div>
      <CodeBlock text={text} label={name} />
    </>
  );
}
