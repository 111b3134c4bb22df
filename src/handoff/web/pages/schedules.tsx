import { Link } from 'react-router';

import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock } from '../../../kit/web/components/code.tsx';
import { Badge, Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { Columns, PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { moment } from '../../../kit/web/format.ts';
import type { Schedule } from '../../model/schedule.ts';
import { useMay, useNextTimes, useSchedule, useSchedules, useWrite } from '../data/queries.ts';
import { Command } from '../parts/form-dialog.tsx';
import { Name, TimeUntil } from '../parts/texts.tsx';

/** The schedules of the tenant, with their next times in the time zone of the viewer. */
export function Schedules() {
  useTitle('Schedules');
  const schedules = useSchedules();
  return (
    <>
      <PageHeader title="Schedules" subtitle={`Times are those of ${ownZone()}.`} />
      <Panel flush>
        <LoadedTable
          query={schedules}
          empty={<NoSchedules />}
          stacks
          label="Schedules"
          keyOf={({ name }) => name}
          columns={[
            {
              name: 'Schedule',
              by: ({ name }) => name,
              cell: ({ name }) => (
                <Link to={`/schedules/${encodeURIComponent(name)}`}>
                  <Name>{name}</Name>
                </Link>
              ),
            },
            { name: 'State', cell: (schedule) => <State of={schedule} /> },
            {
              name: 'When',
              cell: ({ cron, timezone }) => (
                <>
                  <code>{cron}</code> in {timezone}
                </>
              ),
            },
            { name: 'Next', tabular: true, by: ({ next_at }) => next_at, cell: ({ next_at }) => <Next at={next_at} /> },
            { name: 'Last', tabular: true, by: ({ last_at }) => last_at, cell: (schedule) => <Last of={schedule} /> },
          ]}
        />
      </Panel>
    </>
  );
}

const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

const NoSchedules = () => (
  <Empty title="No schedules yet">
    <p>A schedule makes a packet again and again, such as each Monday at nine. To write one:</p>
    <Command>service-cli schedules set weekly-report schedule.yaml</Command>
  </Empty>
);

function State({ of: { active, disabled_reason, last_error } }: { of: Schedule }) {
  if (disabled_reason !== null) return <Badge tone="bad">switched off</Badge>;
  if (!active) return <Badge>off</Badge>;
  return last_error === null ? <Badge tone="good">on</Badge> : <Badge tone="warn">last time failed</Badge>;
}

const Next = ({ at }: { at: string | null }) =>
  at === null ? (
    <span className="muted">never</span>
  ) : (
    <>
      {moment(at)}, <TimeUntil at={at} />
    </>
  );

const Last = ({ of: { last_at, last_packet_id } }: { of: Schedule }) =>
  last_at === null ? <span className="muted">never</span> : <Link to={`/packets/${last_packet_id}`}>{moment(last_at)}</Link>;

/** A schedule: its next times, what it makes, and why its last time made nothing. */
export const SchedulePage = byId(({ id: name }) => {
  useTitle(name);
  const schedule = useSchedule(name);
  const mayWork = useMay('work');
  return (
    <>
      <PageHeader
        title={<Name>{name}</Name>}
        subtitle={schedule.data === undefined ? undefined : <State of={schedule.data} />}
        actions={mayWork ? <Run name={name} /> : undefined}
      />
      <Load query={schedule} what="The schedule">
        {(found) => (
          <>
            {found.disabled_reason === null ? null : (
              <Callout tone="bad" title="The service has switched it off.">
                {found.disabled_reason}
              </Callout>
            )}
            {found.last_error === null ? null : (
              <Callout tone="warn" title={`${moment(found.last_error.at)} made no packet.`}>
                {found.last_error.detail}
              </Callout>
            )}
            <Columns min="20rem">
              <Panel title="When">
                <p>
                  <code>{found.cron}</code> in {found.timezone}. Last: <Last of={found} />.
                </p>
                <p className="muted">Its next times, in {ownZone()}:</p>
                <NextTimes name={name} />
              </Panel>
              <Panel title="The packet that it makes">
                <CodeBlock label="The packet" text={JSON.stringify(found.packet, null, 2)} />
              </Panel>
            </Columns>
          </>
        )}
      </Load>
    </>
  );
});

function NextTimes({ name }: { name: string }) {
  return (
    <Load query={useNextTimes(name)} what="The next times">
      {(times) => (
        <ol className="tabular">
          {times.map((time) => (
            <li key={time}>
              <time dateTime={time}>{moment(time)}</time>
            </li>
          ))}
        </ol>
      )}
    </Load>
  );
}

function Run({ name }: { name: string }) {
  const run = useWrite((client) => client.runSchedule({ params: { name } }), ['packets'], {
    onSuccess: () => toast({ text: 'A packet is made.', tone: 'good' }),
    onError: (error) => toast({ text: error.message, tone: 'bad' }),
  });
  return (
    <Button busy={run.isPending} onClick={() => run.mutate()}>
      Run now
    </Button>
  );
}
