import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import type { Hitl } from '../../model/hitl.ts';
import { groupPrefix, nameKey } from '../../model/people.ts';
import { useGroups } from '../data/queries.ts';
import styles from './action.module.css';
import { jsonText, titlesOf } from './argument-fields.tsx';
import { Name, Prose } from './texts.tsx';

interface ActionProps {
  hitl: Pick<Hitl, 'action' | 'approvals' | 'step'> & {
    readonly edited?: Pick<NonNullable<Hitl['edited']>, 'arguments'> & { readonly name?: string };
  };
}

/** The action that a question is about, whole, with what was changed and who has approved. */
export function Action({ hitl }: ActionProps) {
  const { action, edited, approvals = [], step } = hitl;
  if (action === undefined) return null;
  return (
    <>
      <Panel title={action.title ?? 'Action'}>
        <p>
          <code>{action.tool}</code>
        </p>
        {action.description === undefined ? null : <Prose>{action.description}</Prose>}
        <Arguments given={edited?.arguments ?? action.arguments} proposed={action.arguments} titles={titlesOf(action.schema)} />
        {edited?.name === undefined ? null : (
          <p className="muted">
            Changed by <Name>{edited.name}</Name>.
          </p>
        )}
      </Panel>
      {approvals.length === 0 && !step ? null : (
        <Panel title="Approvals">
          {step ? (
            <p>
              Step {step.index} of {step.of}: {step.given} of {step.count} have approved. Asked: {step.from.join(', ')}.{' '}
              <Missing from={step.from} approvals={approvals} />
            </p>
          ) : null}
          <ul className={styles.approvals}>
            {approvals.map(({ name, for: other, at, decision, void: isVoid }) => (
              <li key={`${name} ${at}`}>
                <Name>{name}</Name> {decision === 'edit' ? 'changed the arguments' : 'approved'}
                {other === null ? null : (
                  <>
                    {' '}
                    for <Name>{other}</Name>
                  </>
                )}
                {isVoid ? <Badge>of another version</Badge> : null}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** The most people who are named. */
const maxNamed = 20;

/** Who is asked and has not approved, with the members of groups; a group that is not known here stands for its members. */
function Missing({ from, approvals }: { from: readonly string[]; approvals: NonNullable<Hitl['approvals']> }) {
  const groups = useGroups().data ?? [];
  const members = (name: string) => groups.find((group) => groupPrefix + group.name === name)?.members ?? [name];
  const approved = new Set(approvals.filter((one) => !one.void).flatMap(({ name, for: other }) => [name, other ?? name].map(nameKey)));
  const missing = [...new Set(from.flatMap(members))].filter((name) => !approved.has(nameKey(name)));
  if (missing.length === 0) return null;
  const more = missing.length > maxNamed ? ` and ${missing.length - maxNamed} more` : '';
  return `Not yet: ${missing.slice(0, maxNamed).join(', ')}${more}.`;
}

interface ArgumentsProps {
  given: Readonly<Record<string, unknown>>;
  proposed: Readonly<Record<string, unknown>>;
  titles: Readonly<Record<string, string>>;
}

/** Arguments, one row each, with the proposed value where it was changed. */
function Arguments({ given, proposed, titles }: ArgumentsProps) {
  const names = [...new Set([...Object.keys(given), ...Object.keys(proposed)])];
  if (names.length === 0) return <p className="muted">No arguments.</p>;
  return (
    <dl className={styles.arguments}>
      {names.map((name) => {
        const [now, before] = [shown(given[name]), shown(proposed[name])];
        return (
          <div key={name}>
            <dt>{titles[name] === undefined ? <code>{name}</code> : <bdi>{titles[name]}</bdi>}</dt>
            <dd dir="auto">
              {now === before ? (
                now
              ) : (
                <>
                  <del>{before}</del> <ins>{now}</ins>
                </>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

const shown = (value: unknown): string => (value === undefined ? '(none)' : typeof value === 'string' ? value : jsonText(value));
