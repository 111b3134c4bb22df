import { useState } from 'react';
import { Link } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Columns, PageHeader, Panel, Stats } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { count, moment } from '../../../kit/web/format.ts';
import type { StatsHour, Stats as StatsOfTenant } from '../../model/stats.ts';
import { claimableStatus, workingStatuses } from '../../rules/packet-life.ts';
import { roughWords } from '../../rules/time-left.ts';
import { useFilters } from '../data/filters.ts';
import { useMay, useOverdue, useStats } from '../data/queries.ts';
import { HourPlot, type HourSeries } from '../parts/hours.tsx';
import { TimeSince } from '../parts/texts.tsx';
import styles from './overview.module.css';

const periods = { day: { label: 'Last day', days: 1 }, week: { label: 'Last week', days: 7 } };

/** The statistics of the last day or week. */
export function Overview() {
  useTitle('Overview');
  const { params, set } = useFilters();
  const period = params.get('period') === 'week' ? 'week' : 'day';
  const stats = useStats(periods[period].days);
  return (
    <>
      <PageHeader
        title="Overview"
        actions={
          <fieldset className={styles.periods}>
            <legend className="visually-hidden">Period</legend>
            {Object.entries(periods).map(([name, { label }]) => (
              <Button key={name} aria-pressed={name === period} onClick={() => set('period', name === 'day' ? '' : name)}>
                {label}
              </Button>
            ))}
          </fieldset>
        }
      />
      <Load query={stats} what="The statistics" height="7rem" lines={3}>
        {(found) => <Figures stats={found} />}
      </Load>
    </>
  );
}

const oldest = (at: string | null) =>
  at === null ? undefined : (
    <>
      oldest <TimeSince at={at} />
    </>
  );

const linked = (number: number, to: string) => <Link to={to}>{count(number)}</Link>;

function Figures({ stats: { questions, work, deliveries, hours } }: { stats: StatsOfTenant }) {
  const mayManage = useMay('manage');
  const overdue = useOverdue().data;
  const { median_answer_seconds: median } = questions;
  const of = (label: string, number: number, to: string) => ({ label, value: mayManage ? linked(number, to) : count(number) });
  return (
    <>
      <Columns min="14rem">
        <Panel title="Questions">
          <Stats
            min="6.5rem"
            items={[
              { label: 'Open', value: linked(questions.open, '/inbox'), note: oldest(questions.oldest_asked_at) },
              {
                label: 'Answered',
                value: count(questions.answered),
                note: median === null ? undefined : `median ${roughWords(median)}`,
              },
            ]}
          />
        </Panel>
        <Panel title="Work">
          <Stats
            min="6.5rem"
            items={[
              {
                label: 'Waiting',
                value: linked(work.waiting, `/packets?status=${claimableStatus}&order=asc`),
                note: oldest(work.oldest_waiting_at),
              },
              { label: 'Overdue', value: overdue === undefined ? '…' : linked(overdue, '/packets?overdue=true&order=due') },
              { label: 'Held', value: linked(work.held, `/packets?status=${workingStatuses.join(',')}`) },
            ]}
          />
        </Panel>
        <Panel title="Deliveries">
          <Stats
            min="6.5rem"
            items={[
              { label: 'Waiting', value: count(deliveries.waiting) },
              of('Failing receivers', deliveries.failing, '/webhooks'),
              of('Dead letters', deliveries.dead_letters, '/webhooks/dead-letters'),
            ]}
          />
        </Panel>
      </Columns>
      <Columns min="30rem">
        <Plot title="Waiting, held and asked" lines={levels} hours={hours} />
        <Plot title="Done by hour" lines={ends} hours={hours} stacked />
        <Plot title="Created by hour" lines={created} hours={hours} stacked />
        <Plot title="Questions answered by hour" lines={answered} hours={hours} stacked />
      </Columns>
      <ByHour hours={hours} />
    </>
  );
}

type Line = [field: Exclude<keyof StatsHour, 'hour'>, name: string, color: string];

const levels: Line[] = [
  ['waiting', 'Waiting', '--series-1'],
  ['held', 'Held', '--series-3'],
  ['asked', 'Asking a person', '--series-2'],
];
const ends: Line[] = [
  ['completed', 'Completed', '--good'],
  ['failed', 'Failed', '--bad-fill'],
  ['expired', 'Expired', '--series-8'],
];
const created: Line[] = [['created', 'Created', '--series-1']];
const answered: Line[] = [['answered', 'Answered', '--series-2']];
const allLines = [...created, ...ends, ...answered, ...levels];

interface PlotProps {
  title: string;
  lines: readonly Line[];
  hours: readonly StatsHour[];
  stacked?: boolean;
}

function Plot({ title, lines, hours, stacked = false }: PlotProps) {
  const series: HourSeries[] = lines.map(([field, name, color]) => ({ name, color, values: hours.map((hour) => hour[field]) }));
  return (
    <Panel title={title}>
      <HourPlot label={title} hours={hours.map(({ hour }) => hour)} series={series} stacked={stacked} />
    </Panel>
  );
}

/** The figures of the plots as a table, newest first. */
function ByHour({ hours }: { hours: readonly StatsHour[] }) {
  const [open, setOpen] = useState(false);
  return (
    <Panel
      title="By hour"
      flush
      actions={
        <Button aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide the table' : 'Show as a table'}
        </Button>
      }
    >
      {open ? (
        <Table
          label="By hour"
          rows={hours.toReversed()}
          keyOf={({ hour }) => hour}
          columns={[
            { name: 'Hour', tabular: true, cell: ({ hour }) => moment(hour).slice(0, -3) },
            ...allLines.map(([field, name]) => ({ name, number: true, cell: (row: StatsHour) => count(row[field]) })),
          ]}
        />
      ) : null}
    </Panel>
  );
}
