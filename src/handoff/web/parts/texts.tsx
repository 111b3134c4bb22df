import { systemClock } from '../../../kit/clock.ts';
import { Badge, type Tone } from '../../../kit/web/components/feedback.tsx';
import { moment, words } from '../../../kit/web/format.ts';
import { sharedValue } from '../../../kit/web/shared-value.ts';
import type { Status } from '../../model/common.ts';
import { openStatuses } from '../../rules/packet-life.ts';
import { roughTime } from '../../rules/time-left.ts';
import styles from './texts.module.css';

/** The time, as of the last second. */
const read = () => systemClock().getTime();
const now = sharedValue(read());
setInterval(() => now.set(read()), 1000);

const shortUnits = { second: 's', minute: 'min', hour: 'h', day: 'd' };

/** A duration in its largest unit: `3 min`, `2 h`, `4 d`. */
function roughly(milliseconds: number): string {
  const { count, unit } = roughTime(milliseconds / 1000);
  return `${count} ${shortUnits[unit]}`;
}

/** How long ago a moment was. */
export function TimeSince({ at }: { at: string }) {
  const text = now.useAs((time) => {
    const passed = time - Date.parse(at);
    return passed < 5000 ? 'now' : `${roughly(passed)} ago`;
  });
  return (
    <time dateTime={at} title={moment(at)} className={styles.nowrap}>
      {text}
    </time>
  );
}

/** How long until a moment: `next in 5 min`. */
export function TimeUntil({ at }: { at: string }) {
  const text = now.useAs((time) => {
    const left = Date.parse(at) - time;
    return left <= 0 ? 'next now' : `next in ${roughly(left)}`;
  });
  return (
    <time dateTime={at} title={moment(at)} className={styles.nowrap}>
      {text}
    </time>
  );
}

/** How much time is left until a moment, more urgent in the last hour. */
export function TimeLeft({ until }: { until: string | null }) {
  const left = (time: number) => Date.parse(until ?? '') - time;
  const text = now.useAs((time) => (left(time) <= 0 ? 'overdue' : `${roughly(left(time))} left`));
  const tone = now.useAs<Tone>((time) => (left(time) < 600_000 ? 'bad' : left(time) < 3_600_000 ? 'warn' : 'neutral'));
  if (until === null) return <span className="muted">no deadline</span>;
  return (
    <span title={moment(until)}>
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}

const tones: Record<Status, Tone> = {
  created: 'info',
  claimed: 'info',
  in_progress: 'info',
  awaiting_human: 'warn',
  completed: 'good',
  failed: 'bad',
  expired: 'neutral',
};

/** The status of a packet. */
export const StatusBadge = ({ status }: { status: Status }) => <Badge tone={tones[status]}>{words(status)}</Badge>;

interface Timed {
  status: Status;
  not_before?: string;
  due_at?: string;
  overdue?: boolean;
}

/** That an open packet is overdue, or in how long it can be claimed, or how long until it is due: what comes first. Nothing for a packet without times. */
export function Times({ of: { status, not_before = '', due_at, overdue } }: { of: Timed }) {
  const left = now.useAs((time) => (status === 'created' && Date.parse(not_before) > time ? roughly(Date.parse(not_before) - time) : ''));
  if (!openStatuses.includes(status)) return null;
  if (overdue === true)
    return (
      <span title={moment(due_at)}>
        <Badge tone="bad">overdue</Badge>
      </span>
    );
  if (left !== '')
    return (
      <span title={moment(not_before)}>
        <Badge>starts in {left}</Badge>
      </span>
    );
  return due_at === undefined ? null : <TimeLeft until={due_at} />;
}

/** A text that an agent or a person wrote: with its line breaks, and without effect on the direction of the text around it. */
export const Prose = ({ children }: { children: string }) => (
  <p className={styles.prose} dir="auto">
    {children}
  </p>
);

/** A name within a line. */
export const Name = ({ children }: { children: string }) => <bdi className={styles.name}>{children}</bdi>;

/** A long text in a cell of a table, which scrolls sideways rather than break it into single characters. */
export const Long = ({ children }: { children: string }) => <bdi className={styles.long}>{children}</bdi>;
