import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import type { Hitl } from '../../model/hitl.ts';
import styles from './action.module.css';
import { Name, Prose } from './texts.tsx';

/** A value as JSON on several lines. */
export const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);

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
              Step {step.index} of {step.of}: {step.given} of {step.count} have approved. Asked: {step.from.join(', ')}.
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

/** The titles of the fields in the schema of an action. */
function titlesOf(schema: unknown): Readonly<Record<string, string>> {
  const properties = (schema as { properties?: Record<string, { title?: unknown }> } | undefined)?.properties ?? {};
  return Object.fromEntries(Object.entries(properties).flatMap(([name, { title }]) => (typeof title === 'string' ? [[name, title]] : [])));
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
