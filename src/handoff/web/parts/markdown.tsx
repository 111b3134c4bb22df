import { createElement, Fragment, memo, type ReactNode, useMemo, useState } from 'react';
import { Button } from '../../../kit/web/components/button.tsx';
import { count } from '../../../kit/web/format.ts';
import { beginningOf } from '../../../kit/wording.ts';
import { type MarkdownElement, type MarkdownNode, markdownOf } from '../../rules/markdown.ts';
import styles from './markdown.module.css';

/** How much of a text is read as Markdown, in characters, since hostile Markdown takes quadratic time. */
const maxLength = 10_000;

/** A text of others as Markdown: see `markdownOf`. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const start = beginningOf(text, maxLength);
  const content = useMemo(() => rendered(markdownOf(start)), [start]);
  return (
    <div className={styles.markdown} dir="auto">
      {content}
      {start === text ? null : isWhole ? (
        <p>{text.slice(start.length)}</p>
      ) : (
        <Button onClick={() => setWhole(true)}>Show all ({count(text.length - start.length)} more characters)</Button>
      )}
    </div>
  );
});

const rendered = (nodes: readonly MarkdownNode[]): ReactNode =>
  // biome-ignore lint/suspicious/noArrayIndexKey: a text does not change while it is shown.
  nodes.map((node, index) => <Fragment key={index}>{typeof node === 'string' ? node : elementOf(node)}</Fragment>);

function elementOf({ tag, children, href, start }: MarkdownElement): ReactNode {
  const inner = children.length === 0 ? undefined : rendered(children);
  if (tag === 'a')
    return (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {inner}
      </a>
    );
  if (tag === 'table')
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
      <section className={styles.table} tabIndex={0} aria-label="Table">
        <table>
          <tbody>{inner}</tbody>
        </table>
      </section>
    );
  return createElement(tag, tag === 'th' ? { scope: 'col' } : start === undefined ? null : { start }, inner);
}
