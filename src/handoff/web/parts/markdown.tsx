import { lexer, type Token, type Tokens } from 'marked';
import { createElement, Fragment, memo, type ReactNode, useMemo, useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { count } from '../../../kit/web/format.ts';
import styles from './markdown.module.css';

/** How much of a text is read as Markdown, in characters, since hostile Markdown takes quadratic time. */
const maxLength = 10_000;
/** The deepest nesting; beyond it a text is shown as it is. */
const maxDepth = 30;

/** The schemes that a link may have. */
const schemes = ['http:', 'https:', 'mailto:'];

/**
 * A text of others as Markdown. It becomes elements of React, never HTML: HTML in it is shown as text, links lead to web and
 * mail addresses only, and images are links, since the page may not send requests to other hosts.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  // Not between the halves of a surrogate pair.
  const start = text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '');
  const content = useMemo(() => contentOf(start), [start]);
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

function contentOf(text: string): ReactNode {
  try {
    return blocks(lexer(text), 0);
  } catch {
    // Nested too deeply.
    return <p>{text}</p>;
  }
}

const blocks = (tokens: readonly Token[] | undefined, depth: number): ReactNode => {
  if (depth > maxDepth) throw new RangeError('The text is nested too deeply.');
  // biome-ignore lint/suspicious/noArrayIndexKey: a text does not change while it is shown.
  return tokens?.map((token, index) => <Fragment key={index}>{elementOf(token as Tokens.Generic, depth + 1)}</Fragment>);
};

function elementOf(token: Tokens.Generic, depth: number): ReactNode {
  const inner = () => blocks(token.tokens, depth);
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      // Below the panel's heading, and without levels left out, whatever the text has.
      return <h3>{inner()}</h3>;
    case 'paragraph':
      return <p>{inner()}</p>;
    case 'code':
      return (
        <pre>
          <code>{token.text}</code>
        </pre>
      );
    case 'blockquote':
      return <blockquote>{inner()}</blockquote>;
    case 'list':
      return listOf(token as Tokens.List, depth);
    case 'table':
      return tableOf(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    case 'br':
      return <br />;
    case 'strong':
    case 'em':
    case 'del':
      return createElement(token.type, null, inner());
    case 'codespan':
      return <code>{token.text}</code>;
    case 'link':
      return linkOf(token.href, inner(), token.raw);
    case 'image':
      return linkOf(token.href, token.text || token.href, token.raw);
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    case 'text':
      return token.tokens === undefined ? decoded(token.text) : inner();
    default:
      // An escaped character, or HTML.
      return token.type === 'escape' ? token.text : token.raw;
  }
}

const listOf = ({ ordered, start, items }: Tokens.List, depth: number): ReactNode =>
  createElement(
    ordered ? 'ol' : 'ul',
    ordered && typeof start === 'number' ? { start } : null,
    // biome-ignore lint/suspicious/noArrayIndexKey: a text does not change while it is shown.
    items.map(({ tokens }, index) => <li key={index}>{blocks(tokens, depth)}</li>),
  );

function tableOf({ header, rows }: Tokens.Table, depth: number): ReactNode {
  const cells = (row: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
    row.map(({ tokens }, index) => createElement(tag, { key: index }, blocks(tokens, depth)));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
    <section className={styles.table} tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>{cells(header, 'th')}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a text does not change while it is shown.
            <tr key={index}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A link, or its source if it leads to anything but a web or mail address. */
function linkOf(href: string, content: ReactNode, raw: string): ReactNode {
  if (!URL.canParse(href) || !schemes.includes(new URL(href).protocol)) return raw;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {content}
    </a>
  );
}

const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
const decoded = (text: string) => text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity]!);
