import { type PointerEvent, useId, useMemo, useState } from 'react';

import { Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { dollars } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import type { Timeline } from '../../model/timeline.ts';
import styles from './timeline-chart.module.css';
import { runsWhere, type SecondRun, type SecondWords, sentenceOf, tableRows } from './timeline-runs.ts';

/** The outages of a test in time: a strip for each provider, a second to read, and the same as a table. In a rehearsal beside what the chain alone says. */
export function TimelineChart({ result }: { result: TestResult }) {
  const { timeline, expected_timeline: expected } = result;
  const [second, setSecond] = useState(0);
  if (!timeline) return null;
  const last = Math.max(timeline.seconds.at(-1)?.second ?? 0, expected?.seconds.at(-1)?.second ?? 0);
  const names = result.chain.providers.map(({ name }) => name);
  const charts = [
    { title: expected ? 'What the gateway did' : 'What the chain does', timeline },
    ...(expected ? [{ title: 'What the chain alone says', timeline: expected }] : []),
  ];
  return (
    <Panel title="Outages in time">
      <p className={styles.legend}>
        <span className={styles.keyFailed}>failed</span> <span className={styles.keyOut}>left out</span>{' '}
        <span className={styles.keyAnswered}>answered</span> <span className={styles.keyOutage}>outage</span>
      </p>
      {charts.map((chart) => (
        <section key={chart.title} aria-label={chart.title} className={styles.chart}>
          {expected ? <h3>{chart.title}</h3> : null}
          <Strips {...{ names, last, second }} timeline={chart.timeline} onChoose={setSecond} />
          <p className={styles.readout}>
            <b className="tabular">{second} s:</b> {sentenceOf(chart.timeline.seconds.find((row) => row.second === second))}
          </p>
          <Facts timeline={chart.timeline} names={names} />
        </section>
      ))}
      <Chooser {...{ last, second }} text={charts.map((chart) => sentenceAt(chart.timeline, second)).join('. ')} onChoose={setSecond} />
      {charts.map((chart) => (
        <details key={chart.title} className={styles.table}>
          <summary>{chart.title}, as a table</summary>
          <Seconds label={`${chart.title}, by seconds`} timeline={chart.timeline} />
        </details>
      ))}
    </Panel>
  );
}

const sentenceAt = ({ seconds }: Timeline, second: number) => sentenceOf(seconds.find((row) => row.second === second));

interface ChosenProps {
  last: number;
  second: number;
  onChoose: (second: number) => void;
}

/** The second that is read, for the keyboard, screen readers and fingers. */
function Chooser({ last, second, text, onChoose }: ChosenProps & { text: string }) {
  const id = useId();
  return (
    <div className={styles.chooser}>
      <label htmlFor={id}>Second</label>
      <input
        id={id}
        type="range"
        min={0}
        max={last}
        value={second}
        aria-valuetext={`${second} s: ${text}`}
        onChange={({ target }) => onChoose(Number(target.value))}
      />
      <output htmlFor={id} className="tabular">
        {second} s
      </output>
    </div>
  );
}

interface StripsProps extends ChosenProps {
  names: readonly string[];
  timeline: Timeline;
}

/** A strip for each provider. Failures are at its top, answers at its bottom, and the time in which it is left out is a line between. */
function Strips({ names, timeline, last, second, onChoose }: StripsProps) {
  const strips = useMemo(
    () =>
      names.map((name) => ({
        name,
        failed: runsWhere(timeline.seconds, ({ calls }) =>
          calls.some(({ provider, condition }) => provider === name && condition !== null),
        ),
        answered: runsWhere(timeline.seconds, ({ calls }) =>
          calls.some(({ provider, condition }) => provider === name && condition === null),
        ),
        out: runsWhere(timeline.seconds, ({ out }) => out.some(({ provider }) => provider === name)),
        outages: timeline.outages
          .filter(({ provider }) => provider === name)
          .map(({ from_s, to_s }) => ({ from: from_s, to: Math.min(to_s, last + 1) - 1 })),
      })),
    [names, timeline, last],
  );
  const choose = (event: PointerEvent<Element>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    onChoose(Math.max(0, Math.min(last, Math.floor(((event.clientX - left) / width) * (last + 1)))));
  };
  return (
    <div className={styles.strips} aria-hidden="true">
      {strips.map(({ name, failed, answered, out, outages }) => (
        <div key={name} className={styles.strip}>
          <span className={styles.name}>{name}</span>
          <svg
            className={styles.track}
            viewBox={`0 0 ${last + 1} 10`}
            preserveAspectRatio="none"
            onPointerMove={choose}
            onPointerDown={choose}
          >
            <title>{name}</title>
            <Runs runs={outages} y={0} height={10} className={styles.outage} />
            <Runs runs={failed} y={0} height={4} className={styles.failed} />
            <Runs runs={out} y={4.5} height={1} className={styles.out} />
            <Runs runs={answered} y={6} height={4} className={styles.answered} />
            <line x1={second + 0.5} x2={second + 0.5} y1={0} y2={10} className={styles.cursor} />
          </svg>
        </div>
      ))}
      <div className={styles.strip}>
        <span />
        <span className={`${styles.axis} tabular`}>
          <span>0 s</span>
          <span>{Math.round((last + 1) / 2)} s</span>
          <span>{last + 1} s</span>
        </span>
      </div>
    </div>
  );
}

function Runs({ runs, ...rest }: { runs: readonly SecondRun[]; y: number; height: number; className: string | undefined }) {
  return runs.map(({ from, to }) => <rect key={from} x={from} width={to - from + 1} {...rest} />);
}

/** What a timeline says as a whole. */
function Facts({ timeline, names }: { timeline: Timeline; names: readonly string[] }) {
  const { only_last, first_back_s, cost, seconds } = timeline;
  const lost = seconds.reduce((sum, { failed }) => sum + failed, 0);
  const spans = only_last.map(({ from_s, to_s }) => `${from_s} to ${to_s} s`).join(', ');
  return (
    <ul className={styles.facts}>
      <li>{lost === 0 ? 'No prompt was lost.' : `${lost} prompts were lost.`}</li>
      {names.length > 1 && spans !== '' ? (
        <li>
          Only {names.at(-1)} was left: {spans}.
        </li>
      ) : null}
      {first_back_s === null ? null : (
        <li>
          {names[0]} answered again at {first_back_s} s.
        </li>
      )}
      {cost === null || cost === 0 ? null : <li>The calls cost {dollars(cost)}.</li>}
    </ul>
  );
}

/** The table of a timeline: seconds in which the same happened are one row. */
function Seconds({ label, timeline }: { label: string; timeline: Timeline }) {
  const rows = useMemo(() => tableRows(timeline), [timeline]);
  return (
    <Table<SecondRun & SecondWords>
      label={label}
      stacks
      rows={rows}
      keyOf={({ from }) => String(from)}
      columns={[
        { name: 'Seconds', cell: ({ from, to }) => (from === to ? String(from) : `${from} to ${to}`) },
        { name: 'Calls', cell: ({ calls }) => calls },
        { name: 'Left out', cell: ({ out }) => out },
        { name: 'Prompts', cell: ({ prompts }) => prompts },
      ]}
    />
  );
}
