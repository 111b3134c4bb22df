import { memo, useCallback, useMemo, useState } from 'react';
import { Rows } from '../../../kit/web/components/rows.tsx';
import { counted, durationText, words } from '../../../kit/web/format.ts';
import { useMedia } from '../../../kit/web/media.ts';
import type { Finding } from '../../model/finding.ts';
import type { PromptResult } from '../../model/test.ts';
import { AttemptTable } from './attempt-table.tsx';
import { labelled } from './labels.ts';
import styles from './prompt-list.module.css';
import { seriesColor } from './series.ts';

interface PromptListProps {
  prompts: readonly PromptResult[];
  /** The chain's providers in order; each has its own colour. */
  providers: readonly string[];
  /** The findings of the import that concern failures of providers. */
  findings: readonly Finding[];
}

/** The heights of a closed row in pixels, as in the style sheet: one line, or three in a narrow window. */
const rowHeight = { wide: 44, narrow: 84 };

/** The prompts, each with a waterfall of attempts. Only visible rows are rendered, so that a thousand scroll smoothly. */
export function PromptList({ prompts, providers, findings }: PromptListProps) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = useCallback((index: number) => {
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });
  }, []);
  const height = useMedia('(max-width: 60rem)') ? rowHeight.narrow : rowHeight.wide;
  const longestMs = useMemo(() => prompts.reduce((longest, { latency_ms }) => Math.max(longest, latency_ms), 1), [prompts]);
  return (
    <>
      <Legend providers={providers} />
      <Rows
        key={height}
        label={counted(prompts.length, 'prompt')}
        count={prompts.length}
        height={height}
        keyOf={useCallback((index: number) => prompts[index]!.index, [prompts])}
        isHigher={(index) => open.has(prompts[index]!.index)}
        row={(index) => {
          const prompt = prompts[index]!;
          return (
            <Prompt
              prompt={prompt}
              providers={providers}
              findings={findings}
              longestMs={longestMs}
              open={open.has(prompt.index)}
              onToggle={toggle}
            />
          );
        }}
      />
    </>
  );
}

interface PromptProps {
  prompt: PromptResult;
  providers: readonly string[];
  findings: readonly Finding[];
  longestMs: number;
  open: boolean;
  onToggle: (index: number) => void;
}

const Prompt = memo(function Prompt({ prompt, providers, findings, longestMs, open, onToggle }: PromptProps) {
  const { index, scenario, success, served_by, latency_ms, retries_used, error } = prompt;
  return (
    <>
      <button type="button" className={styles.head} aria-expanded={open} onClick={() => onToggle(index)}>
        <span className={styles.index}>{index + 1}</span>
        <span className={styles.scenario}>{labelled(scenario)}</span>
        <span className={success ? styles.served : styles.lost}>{success ? served_by : words(error ?? 'lost')}</span>
        <span className={styles.retries}>{retries_used === 0 ? '' : counted(retries_used, 'retry', 'retries')}</span>
        <span className={styles.latency}>{durationText(latency_ms)}</span>
        <Waterfall prompt={prompt} providers={providers} longestMs={longestMs} />
      </button>
      {open ? <AttemptTable prompt={prompt} findings={findings} /> : null}
    </>
  );
});

/** The attempts of a prompt on a time scale that all prompts share. */
function Waterfall({ prompt, providers, longestMs }: Pick<PromptProps, 'prompt' | 'providers' | 'longestMs'>) {
  return (
    <span className={styles.waterfall} aria-hidden="true">
      {prompt.attempts.map(({ provider, start_ms, latency_ms, condition }, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: an attempt is identified by its index.
          key={index}
          className={condition === null ? styles.answered : styles.failed}
          style={{
            left: `${(start_ms / longestMs) * 100}%`,
            width: `${(latency_ms / longestMs) * 100}%`,
            color: `var(${seriesColor(providers.indexOf(provider))})`,
          }}
        />
      ))}
    </span>
  );
}

function Legend({ providers }: { providers: readonly string[] }) {
  return (
    <ul className={styles.legend} aria-label="Colours of the providers">
      {providers.map((name, index) => (
        <li key={name}>
          <span className={styles.swatch} style={{ background: `var(${seriesColor(index)})` }} aria-hidden="true" />
          {name}
        </li>
      ))}
      <li>
        <span className={`${styles.swatch} ${styles.striped}`} aria-hidden="true" />
        striped: the attempt failed
      </li>
    </ul>
  );
}
