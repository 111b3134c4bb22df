import { Columns3, ListIcon, SlidersHorizontal } from 'lucide-react';
import { memo, useCallback, useState } from 'react';
import { Link } from 'react-router';

import { defined } from '../../../kit/defined.ts';
import { Load } from '../../../kit/web/app/load.tsx';
import { useDebounced } from '../../../kit/web/app/queries.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { Fields } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Rows } from '../../../kit/web/components/rows.tsx';
import { SearchField } from '../../../kit/web/components/search.tsx';
import { count, counted, words } from '../../../kit/web/format.ts';
import { useMedia } from '../../../kit/web/media.ts';
import type { Status } from '../../model/common.ts';
import { priorities, statuses } from '../../model/constants.ts';
import { filtersIn, isTime, useFilters } from '../data/filters.ts';
import { type PacketFilters, type PacketRow, perColumn, searchFilters, useColumn, usePackets } from '../data/queries.ts';
import { Command } from '../parts/form-dialog.tsx';
import { Name, StatusBadge, TimeSince, Times } from '../parts/texts.tsx';
import styles from './packets.module.css';

/** The filters of lists besides the text of a search, with their labels. */
const fields = {
  status: 'Status',
  priority: 'Priority',
  tags: 'Tags (a, b)',
  target_agent: 'For agent (id)',
  source_agent: 'From agent (id)',
  claimed_by: 'Held by agent (id)',
  hitl_required: 'Needs a person',
  overdue: 'Overdue',
  scheduled: 'For later',
  due_before: 'Due before',
  order: 'Order',
  created_after: 'Created after',
  created_before: 'Created before',
  updated_after: 'Changed after',
  updated_before: 'Changed before',
  parent_packet_id: 'Parent packet (id)',
} as const;
type FilterName = keyof typeof fields;
const filterNames = Object.keys(fields) as FilterName[];
/** The filters that are shown before the user asks for more. */
const firstNames: readonly FilterName[] = ['status', 'priority', 'tags', 'target_agent'];

const yesOrNo = [
  { value: '', label: 'all' },
  { value: 'true', label: 'yes' },
  { value: 'false', label: 'no' },
];

const choices: Partial<Record<FilterName, readonly (string | { value: string; label: string })[]>> = {
  status: [{ value: '', label: 'all' }, ...statuses.map((value) => ({ value, label: words(value) }))],
  priority: [{ value: '', label: 'all' }, ...priorities],
  hitl_required: yesOrNo,
  overdue: yesOrNo,
  scheduled: yesOrNo,
  order: [
    { value: '', label: 'newest first' },
    { value: 'asc', label: 'oldest first' },
    { value: 'due', label: 'nearest due first' },
  ],
};

const isYes = (value: string | undefined) => (value === undefined ? undefined : value === 'true');

/** The filters of the page's address. A value that is not among the choices is ignored. */
function packetFilters({
  status,
  priority,
  order,
  hitl_required,
  overdue,
  scheduled,
  ...texts
}: Partial<Record<FilterName | 'q', string>>): PacketFilters {
  const wanted = statuses.filter((one) => status?.split(',').includes(one));
  return defined({
    ...texts,
    status: wanted.length === 0 ? undefined : wanted,
    priority: priorities.find((one) => one === priority),
    order: (['asc', 'due'] as const).find((one) => one === order),
    hitl_required: isYes(hitl_required),
    overdue: isYes(overdue),
    scheduled: isYes(scheduled),
  });
}

/** The choices of a filter. Links of other pages set several of them at once, which are then one more choice. */
function optionsOf(name: FilterName, value: string) {
  const options = choices[name];
  if (!value.includes(',')) return options;
  return options?.concat({ value, label: value.split(',').map(words).join(', ') });
}

/** All packets, as a list with search and filters, or as a board by status. */
export function Packets() {
  useTitle('Packets');
  const { params, set, clear } = useFilters();
  const isBoard = params.get('view') === 'board';
  const filters = useDebounced(params.toString(), 250);
  const wanted = packetFilters(filtersIn(new URLSearchParams(filters), ['q', ...filterNames]));
  return (
    <>
      <PageHeader
        title="Packets"
        actions={
          <Button icon={isBoard ? ListIcon : Columns3} onClick={() => set('view', isBoard ? '' : 'board')}>
            {isBoard ? 'Show as a list' : 'Show as a board'}
          </Button>
        }
      />
      <Panel flush>
        <SearchField
          label="Search packets"
          placeholder="Words, &quot;phrases&quot;, beginnings*"
          value={params.get('q') ?? ''}
          onChange={(text) => set('q', text)}
        />
        <Filters params={params} onChange={set} isBoard={isBoard} />
        {isBoard ? null : <List key={JSON.stringify(wanted)} filters={wanted} onClear={clear} />}
      </Panel>
      {isBoard ? <Board filters={wanted} /> : null}
    </>
  );
}

interface FiltersProps {
  params: URLSearchParams;
  isBoard: boolean;
  onChange: (name: string, value: string) => void;
}

function Filters({ params, isBoard, onChange }: FiltersProps) {
  const isSet = (name: FilterName) => (params.get(name) ?? '') !== '';
  const [more, setMore] = useState(() => filterNames.some((name) => isSet(name) && !firstNames.includes(name)));
  const isSearch = (params.get('q') ?? '').trim() !== '';
  const taken: readonly string[] = searchFilters;
  const shown = (more ? filterNames : firstNames).filter((name) => !(isBoard && name === 'status') && (!isSearch || taken.includes(name)));
  return (
    <div className={styles.filters}>
      <Fields min={more ? '13rem' : '9rem'}>
        {shown.map((name) => {
          const common = { label: fields[name], value: params.get(name) ?? '' };
          const onInput = ({ target }: { target: { value: string } }) => onChange(name, target.value);
          const options = optionsOf(name, common.value);
          if (options !== undefined) return <SelectField key={name} {...common} options={options} onChange={onInput} />;
          return <TextField key={name} {...common} type={isTime(name) ? 'datetime-local' : 'text'} onChange={onInput} />;
        })}
      </Fields>
      <div className={styles.more}>
        <Button icon={SlidersHorizontal} aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? 'Fewer filters' : 'More filters'}
        </Button>
        {isSearch ? <span className="muted">A search has fewer filters than the list.</span> : null}
      </div>
    </div>
  );
}

/** The heights of a row in pixels, as in the style sheet: two lines, or four in a narrow window. */
const rowHeight = { wide: 60, narrow: 112 };

function List({ filters, onClear }: { filters: PacketFilters; onClear: () => void }) {
  const { first, failed, at, setRange } = usePackets(filters);
  const height = useMedia('(max-width: 40rem)') ? rowHeight.narrow : rowHeight.wide;
  const onRange = useCallback((from: number, to: number) => setRange({ first: from, last: to }), [setRange]);
  return (
    <div className={styles.list}>
      <Load query={first} what="The packets" height="3rem">
        {({ total, total_is }) =>
          total === 0 ? (
            <NoPackets isFiltered={Object.keys(filters).length > 0} onClear={onClear} />
          ) : (
            <>
              <p className={styles.total} role="status">
                {total_is === 'at_least' ? 'At least ' : ''}
                {counted(total, 'packet')}
              </p>
              {failed === undefined ? null : (
                <Callout
                  tone="bad"
                  alert
                  title="Some packets could not be loaded."
                  actions={<Button onClick={() => void failed.refetch()}>Try again</Button>}
                >
                  {failed.error?.message}
                </Callout>
              )}
              <Rows
                key={height}
                label="Packets"
                count={total}
                height={height}
                keyOf={identity}
                onRange={onRange}
                row={(index) => <Row packet={at(index)} />}
              />
            </>
          )
        }
      </Load>
    </div>
  );
}

const identity = (index: number) => index;

interface RowProps {
  packet: PacketRow | undefined;
  /** Whether it is on the board, where the heading of its column has the status. */
  isCard?: boolean;
}

const Row = memo(function Row({ packet, isCard = false }: RowProps) {
  if (packet === undefined) return <div className={styles.row}>…</div>;
  const { id, status, metadata, context, updated_at, snippet } = packet;
  return (
    <Link to={`/packets/${id}`} className={styles.row!}>
      <span className={styles.summary} dir="auto">
        {snippet ?? context.summary}
      </span>
      <span className={styles.meta}>
        {isCard ? null : <StatusBadge status={status} />}
        {metadata.priority === 'normal' ? null : (
          <Badge tone={metadata.priority === 'critical' ? 'bad' : 'neutral'}>{metadata.priority}</Badge>
        )}
        <Times of={packet} />
        <span className={styles.agents}>
          <Name>{metadata.source_agent.name}</Name> → <Name>{metadata.target_agent.name}</Name>
        </span>
        <TimeSince at={updated_at} />
      </span>
    </Link>
  );
});

/** The newest packets of each status in columns, with their numbers. */
function Board({ filters }: { filters: PacketFilters }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
    <section className={styles.board} aria-label="Packets by status" tabIndex={0}>
      {statuses.map((status) => (
        <Column key={status} status={status} filters={filters} />
      ))}
    </section>
  );
}

/** The address of the list with the filters of the board. */
function listPath(status: Status, filters: URLSearchParams): string {
  const params = new URLSearchParams(filters);
  params.delete('view');
  params.set('status', status);
  return `/packets?${params}`;
}

function Column({ status, filters }: { status: Status; filters: PacketFilters }) {
  const column = useColumn(status, filters);
  const { params } = useFilters();
  return (
    <Panel flush title={words(status)} actions={<Badge>{count(column.data?.total)}</Badge>}>
      <div className={styles.cards}>
        <Load query={column} what="The column" lines={3}>
          {({ packets, total }) => (
            <>
              {packets.map((packet) => (
                <Row key={packet.id} packet={packet} isCard />
              ))}
              {total === 0 ? <p className={styles.total}>none</p> : null}
              {total > perColumn ? (
                <p className={styles.total}>
                  <Link to={listPath(status, params)}>All {count(total)}</Link>
                </p>
              ) : null}
            </>
          )}
        </Load>
      </div>
    </Panel>
  );
}

function NoPackets({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) return <Empty title="No packet matches" actions={<Button onClick={onClear}>Clear the filters</Button>} />;
  return (
    <Empty title="No packets yet">
      <p>Agents hand work over in packets. To create one:</p>
      <Command>{'service-cli packets create --source-id me --target-id resolver --summary "Refund order 4711"'}</Command>
    </Empty>
  );
}
