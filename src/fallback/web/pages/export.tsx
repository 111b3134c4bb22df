import { Download } from 'lucide-react';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { CheckField } from '../../../kit/web/components/field.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { download } from '../../../kit/web/download.ts';
import { counted } from '../../../kit/web/format.ts';
import type { Export } from '../../model/export.ts';
import { exportFormats, targets } from '../../model/targets.ts';
import { useExport } from '../data/queries.ts';
import { labelledNotes } from '../parts/labels.ts';
import { useCurrentChain } from './chain.tsx';
import styles from './export.module.css';

/** The page with a chain's exports. */
export function ExportPage() {
  const chain = useCurrentChain();
  const [params, setParams] = useSearchParams();
  const format = exportFormats.find((name) => name === params.get('format')) ?? exportFormats[0]!;
  const [preferRetry, setPreferRetry] = useState(false);
  const exported = useExport(chain, format, preferRetry ? 'retry' : 'failover');
  return (
    <div className={styles.columns}>
      <nav aria-label="Formats" className={styles.formats}>
        {exportFormats.map((name) => (
          <button
            key={name}
            type="button"
            aria-current={name === format ? 'true' : undefined}
            onClick={() => setParams({ format: name }, { replace: true })}
          >
            {targets[name].label}
          </button>
        ))}
      </nav>
      <Load query={exported} what="The export">
        {(found) => <Exported exported={found} preferRetry={preferRetry} onPreferRetry={setPreferRetry} />}
      </Load>
    </div>
  );
}

interface ExportedProps {
  exported: Export;
  preferRetry: boolean;
  onPreferRetry: (value: boolean) => void;
}

function Exported({ exported, preferRetry, onPreferRetry }: ExportedProps) {
  const { format, filename, content, content_type, lossless, warnings } = exported;
  return (
    <Panel
      title={
        <span className={styles.title}>
          {filename} {lossless ? <Badge tone="good">lossless</Badge> : <Badge tone="warn">not lossless</Badge>}
        </span>
      }
      actions={
        <>
          <CopyButton text={content} />
          <Button icon={Download} onClick={() => download(filename, content, content_type)}>
            Download
          </Button>
        </>
      }
    >
      {targets[format].hasOneRetryCount ? (
        <CheckField
          label="Prefer retries to failover"
          hint="This target has one number of retries for all failures. By default nothing is retried, so that waits are short."
          checked={preferRetry}
          onChange={(event) => onPreferRetry(event.target.checked)}
        />
      ) : null}
      <Notes
        tone={lossless ? 'info' : 'warn'}
        title={lossless ? counted(warnings.length, 'note') : `The target differs in ${counted(warnings.length, 'way')}.`}
        notes={labelledNotes(warnings)}
      />
      <CodeBlock text={content} label={filename} />
      <p className="muted">An export contains no keys, only the names of their environment variables.</p>
    </Panel>
  );
}
