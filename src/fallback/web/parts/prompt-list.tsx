import { useVirtualizer } from '@tanstack/react-virtual';
import { ChevronRight } from 'lucide-react';
import { memo, useMemo, useRef, useState } from 'react';

import { seriesColor } from '../../../kit/web/charts/series.ts';
import { counted, durationText, words } from '../../../kit/web/format.ts';
import type { PromptResult } from '../../model/test.ts';
import { AttemptTable } from './attempt-table.tsx';
import styles from './prompt-list.module.css';

interface PromptListProps {
  prompts: readonly PromptResult[];
  /** The chain's providers in their order: each has a colour of its own. */
  providers: readonly string[];
}

/** The prompts, each with its waterfall of attempts. Only the rows in sight are drawn, so that a thousand scroll freely. */
export function PromptList({ prompts, providers }: PromptListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const longestMs = useMemo(() => Math.max(1, ...prompts.map(({ latency_ms }) => latency_ms)), [prompts]);
  const rows = useVirtualizer({
    count: prompts.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 44,
    getItemKey: (index) => prompts[index]!.index,
    overscan: 8,
  });
  const toggle = (index: number) =>
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });

  return (
    <>
      <Legend providers={providers} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1). */}
      <section ref={scroller} className={styles.scroller} aria-label={counted(prompts.length, 'prompt')} tabIndex={0}>
        <ul className={styles.rows} style={{ height: `${rows.getTotalSize()}px` }}>
          {rows.getVirtualItems().map(({ index, key, start }) => {
            const prompt = prompts[index]!;
            return (
              <li
                key={key}
                ref={rows.measureElement}
                data-index={index}
                className={styles.row}
                style={{ transform: `translateY(${start}px)` }}
                aria-setsize={prompts.length}
                aria-posinset={index + 1}
              >
                <Prompt prompt={prompt} providers={providers} longestMs={longestMs} open={open.has(prompt.index)} onToggle={toggle} />
              </li>
            );
          })}
        </ul>
      </section>
    </>
  );
}

interface PromptProps {
  prompt: PromptResult;
  providers: readonly string[];
  longestMs: number;
  open: boolean;
  onToggle(index: number): void;
}

const Prompt = memo(function Prompt({ prompt, providers, longestMs, open, onToggle }: PromptProps) {
  const { index, scenario, success, served_by, latency_ms, retries_used, error, attempts } = prompt;
  return (
    <>
      <button type="button" className={styles.head} aria-expanded={open} onClick={() => onToggle(index)}>
        <ChevronRight size={14} aria-hidden="true" className={styles.chevron} />
        <span className={styles.index}>{index + 1}</span>
        <span className={styles.scenario}>{scenario}</span>
        <span className={success ? styles.served : styles.lost}>{success ? served_by : words(error ?? 'lost')}</span>
        <span className={styles.retries}>{retries_used === 0 ? '' : counted(retries_used, 'retry', 'retries')}</span>
        <span className={styles.latency}>{durationText(latency_ms)}</span>
        <span className={styles.waterfall} aria-hidden="true">
          {attempts.map(({ provider, start_ms, latency_ms: own, condition }, place) => (
            <span
              // biome-ignore lint/suspicious/noArrayIndexKey: an attempt is known by its place.
              key={place}
              className={styles.attempt}
              data-failed={condition !== null || undefined}
              style={{
                left: `${(start_ms / longestMs) * 100}%`,
                width: `max(2px, ${(own / longestMs) * 100}%)`,
                background: `var(${seriesColor(providers.indexOf(provider))})`,
              }}
            />
          ))}
        </span>
      </button>
      {open ? <AttemptTable prompt={prompt} /> : null}
    </>
  );
});

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
        <span className={`${styles.swatch} ${styles.hatched}`} aria-hidden="true" />
        striped: the attempt failed
      </li>
    </ul>
  );
}
