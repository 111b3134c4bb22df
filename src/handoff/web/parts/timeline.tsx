import { Load } from '../../../kit/web/app/load.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { moment, words } from '../../../kit/web/format.ts';
import type { HistoryEvent, Packet } from '../../model/packet.ts';
import { roughWords } from '../../rules/time-left.ts';
import { useHistory, useKeyNames } from '../data/queries.ts';
import { detailText } from './question.tsx';
import { TimeSince } from './texts.tsx';
import styles from './timeline.module.css';

/** Everything that happened to the packet, newest first, in sentences; the details of each step are shown on demand. */
export function Timeline({ packet }: { packet: Packet }) {
  const history = useHistory(packet.id, packet.revision);
  const nameOf = useKeyNames();
  const names = agentNames(packet);
  return (
    <Panel title="Timeline">
      <Load query={history} what="The history" lines={3}>
        {(events) => (
          <ol className={styles.timeline}>
            {steps(events, names).map(({ sentence, event, times, index }) => (
              <li key={index}>
                <p dir="auto">
                  {sentence}
                  {times === 1 ? '' : ` (${times} times)`}
                </p>
                <details>
                  <summary>
                    <TimeSince at={event.timestamp} />
                  </summary>
                  <dl className={styles.details}>
                    {detailsOf(event, nameOf).map(([name, value]) => (
                      <div key={name}>
                        <dt>{name}</dt>
                        <dd dir="auto">{value}</dd>
                      </div>
                    ))}
                  </dl>
                </details>
              </li>
            ))}
          </ol>
        )}
      </Load>
    </Panel>
  );
}

interface Step {
  readonly sentence: string;
  /** The event that the sentence describes: the last one of those in a row. */
  readonly event: HistoryEvent;
  /** How many events in a row the sentence describes. */
  readonly times: number;
  readonly index: number;
}

/** The steps of a history, newest first. What happened several times in a row, as attempts to send a message do, is one step. */
function steps(events: readonly HistoryEvent[], names: ReadonlyMap<string, string>): Step[] {
  const found: Step[] = [];
  for (const [index, event] of events.entries()) {
    const sentence = sentenceOf(event, names);
    const last = found.at(-1);
    if (last?.sentence === sentence) found[found.length - 1] = { ...last, event, times: last.times + 1 };
    else found.push({ sentence, event, times: 1, index });
  }
  return found.toReversed();
}

/** The names of the agents that a packet names, by their ids. */
function agentNames({ metadata, claimed_by }: Packet): ReadonlyMap<string, string> {
  const holder = claimed_by === null ? [] : [[claimed_by.agent_id, claimed_by.agent_name] as const];
  return new Map([metadata.source_agent, metadata.target_agent].map(({ id, name }) => [id, name] as const).concat(holder));
}

const ways: Record<string, string> = {
  api: 'through the API',
  console: 'in the console',
  link: 'by an answer link',
  mcp: 'over MCP',
  a2a: 'over A2A',
};

/** Who acted: `dana` for the actor `human:dana`. A part of the service has its own name, except the sweeper. */
const actorName = (actor: string): string => (actor === 'system:sweeper' ? 'The service' : actor.replace(/^(agent|human|key|system):/, ''));

const text = (details: HistoryEvent['details'], name: string): string | undefined => {
  const value = details[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};

/** What an answer says: the response, or the values of its form. */
export function answerText(details: HistoryEvent['details']): string {
  const { data } = details;
  if (typeof data === 'object' && data !== null)
    return Object.entries(data)
      .map(([name, value]) => `${name}: ${detailText(value)}`)
      .join(', ');
  return text(details, 'response') ?? '';
}

/** An event of a history as a sentence. */
function sentenceOf({ event_type, actor, details }: HistoryEvent, names: ReadonlyMap<string, string>): string {
  const who = actor.startsWith('agent:') ? (names.get(actorName(actor)) ?? actorName(actor)) : actorName(actor);
  const get = (name: string) => text(details, name);
  const sentences: Readonly<Record<string, () => string>> = {
    created: () => `${who} handed the work over`,
    claimed: () => {
      const lease = details.lease_seconds;
      return `${get('agent_name') ?? who} claimed it${typeof lease === 'number' ? ` for ${roughWords(lease)}` : ''}`;
    },
    in_progress: () => `${who} began to work`,
    awaiting_human: () => `${who} asked ${get('responder') ?? 'a person'}${get('question') === undefined ? '' : `: ${get('question')}`}`,
    hitl_responded: () =>
      `${who} answered ${answerText(details)}${ways[get('via') ?? ''] === undefined ? '' : ` ${ways[get('via') ?? '']}`}${details.unverified === true ? ', with a name that nobody verified' : ''}`,
    hitl_reminded: () => `${get('responder') ?? 'The channels'} got a reminder`,
    hitl_timed_out: () => 'The time to answer was over',
    question_withdrawn: () => `${who} withdrew the question`,
    completed: () => `${who} completed it`,
    failed: () => (get('reason') === 'hitl_timed_out' ? 'It failed, since nobody answered in time' : `${who} ended it as failed`),
    expired: () =>
      ({
        deleted: `${who} deleted it`,
        unclaimed: 'It expired, since nobody claimed it',
        hitl_timed_out: 'It expired, since nobody answered in time',
      })[get('reason') ?? ''] ?? `${who} ended it as expired`,
    released: () => `${who} released it`,
    lease_expired: () => 'The lease ended; any agent may claim it',
    updated: () => `${who} changed ${Array.isArray(details.fields) ? details.fields.join(', ') : 'it'}`,
    chained: () => `${who} continued it in another packet`,
    answer_link_created: () =>
      `${actor.startsWith('system:') ? 'A message with an answer link was sent' : 'An answer link was made'}${get('responder') === undefined ? '' : ` for ${get('responder')}`}`,
    answer_link_revoked: () => 'An answer link was revoked',
  };
  return sentences[event_type]?.() ?? `${who}: ${words(event_type)}`;
}

/** The exact name, time, actor, key and details of an event. */
function detailsOf({ event_type, actor, timestamp, key_id, details }: HistoryEvent, nameOf: (keyId: string) => string): [string, string][] {
  return [
    ['Event', event_type],
    ['When', moment(timestamp)],
    ['Actor', actor],
    ...(key_id === null ? [] : ([['Key', nameOf(key_id)]] satisfies [string, string][])),
    ...Object.entries(details).flatMap(([name, value]): [string, string][] => (value === null ? [] : [[words(name), detailText(value)]])),
  ];
}
