import { lexer, type Token, type Tokens } from 'marked';

/** An element of a text that was read as Markdown. */
export interface MarkdownElement {
  readonly tag:
    | 'p'
    | 'h3'
    | 'pre'
    | 'code'
    | 'blockquote'
    | 'ul'
    | 'ol'
    | 'li'
    | 'table'
    | 'tr'
    | 'th'
    | 'td'
    | 'hr'
    | 'br'
    | 'strong'
    | 'em'
    | 'del'
    | 'a';
  readonly children: readonly MarkdownNode[];
  /** The address of a link: a web or mail address. */
  readonly href?: string;
  /** The first number of an ordered list. */
  readonly start?: number;
}
export type MarkdownNode = string | MarkdownElement;

/** The deepest nesting; beyond it a text is shown as it is. */
const maxDepth = 30;

/** The schemes that a link may have. */
const schemes = ['http:', 'https:', 'mailto:'];

const element = (tag: MarkdownElement['tag'], children: readonly MarkdownNode[] = [], more: object = {}): MarkdownElement => ({
  tag,
  children,
  ...more,
});

/**
 * A text of others as a tree of elements, never as HTML: HTML in it is text, links lead to web and mail addresses only, and images
 * are links, since pages send no requests to other hosts. Hostile Markdown takes quadratic time: callers bound the length.
 */
export function markdownOf(text: string): readonly MarkdownNode[] {
  try {
    return blocks(lexer(text), 0);
  } catch {
    // Nested too deeply.
    return [element('p', [text])];
  }
}

/** The most characters, and the most of them that can be Markdown's marks, of a text that is parsed in a few milliseconds. */
const quickLength = 4000;
const quickMarks = 150;
const marks = /[^\p{L}\p{N}\s.,:;?'"/%€$@]/gu;

/** Whether a text is parsed as Markdown in a few milliseconds, however hostile it is. */
export const isQuick = (text: string): boolean => text.length <= quickLength && (text.match(marks)?.length ?? 0) <= quickMarks;

function blocks(tokens: readonly Token[] | undefined, depth: number): MarkdownNode[] {
  if (depth > maxDepth) throw new RangeError('The text is nested too deeply.');
  return (tokens ?? []).flatMap((token) => nodesOf(token, depth + 1));
}

const isA = <Kind extends Tokens.Generic>(token: Token, type: Kind['type']): token is Kind => token.type === type;

function nodesOf(token: Token, depth: number): MarkdownNode | readonly MarkdownNode[] {
  const inner = () => blocks('tokens' in token ? token.tokens : undefined, depth);
  if (isA<Tokens.List>(token, 'list')) return listElement(token, depth);
  if (isA<Tokens.Table>(token, 'table')) return tableOf(token, depth);
  if (isA<Tokens.Link>(token, 'link')) return linkOf(token.href, inner(), token.raw);
  if (isA<Tokens.Image>(token, 'image')) return linkOf(token.href, [token.text || token.href], token.raw);
  if (isA<Tokens.Code>(token, 'code')) return element('pre', [element('code', [token.text])]);
  if (isA<Tokens.Codespan>(token, 'codespan')) return element('code', [token.text]);
  if (isA<Tokens.Checkbox>(token, 'checkbox')) return token.checked ? '☑ ' : '☐ ';
  if (isA<Tokens.Text>(token, 'text')) return token.tokens === undefined ? decoded(token.text) : inner();
  if (isA<Tokens.Escape>(token, 'escape')) return token.text;
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'heading':
      // One level for all headings, below that of the part of the page, so that the page leaves no level out.
      return element('h3', inner());
    case 'paragraph':
      return element('p', inner());
    case 'blockquote':
    case 'strong':
    case 'em':
    case 'del':
      return element(token.type, inner());
    case 'hr':
    case 'br':
      return element(token.type);
    default:
      // HTML.
      return token.raw;
  }
}

const listElement = ({ ordered, start, items }: Tokens.List, depth: number): MarkdownElement =>
  element(
    ordered ? 'ol' : 'ul',
    items.map(({ tokens }) => element('li', blocks(tokens, depth))),
    ordered && typeof start === 'number' ? { start } : {},
  );

function tableOf({ header, rows }: Tokens.Table, depth: number): MarkdownElement {
  const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
    element(
      'tr',
      cells.map(({ tokens }) => element(tag, blocks(tokens, depth))),
    );
  return element('table', [row(header, 'th'), ...rows.map((cells) => row(cells, 'td'))]);
}

/** A link, or its source if it leads to anything but a web or mail address. */
function linkOf(href: string, children: readonly MarkdownNode[], raw: string): MarkdownNode {
  return URL.canParse(href) && schemes.includes(new URL(href).protocol) ? element('a', children, { href }) : raw;
}

const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
const decoded = (text: string) => text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity]!);
