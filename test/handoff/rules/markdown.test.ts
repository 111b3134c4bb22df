import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isQuick, type MarkdownNode, markdownOf } from '../../../src/handoff/rules/markdown.ts';

/** A tree in short: `p(a strong(b))`. */
const short = (nodes: readonly MarkdownNode[]): string =>
  nodes
    .map((node) =>
      typeof node === 'string' ? node : `${node.tag}${node.start ?? ''}${node.href ? `=${node.href}` : ''}(${short(node.children)})`,
    )
    .join('');

test('Markdown becomes elements of a fixed list of tags; HTML stays text, and links lead to web and mail addresses only', () => {
  for (const [text, tree] of [
    ['a **b** _c_ ~~d~~ `e`', 'p(a strong(b) em(c) del(d) code(e))'],
    ['# A\n\ntext', 'h3(A)p(text)'],
    ['3. a\n4. b', 'ol3(li(a)li(b))'],
    ['- [x] a\n- b', 'ul(li(☑ a)li(b))'],
    ['> a', 'blockquote(p(a))'],
    ['```\n<b>\n```', 'pre(code(<b>))'],
    ['| a |\n|---|\n| b |', 'table(tr(th(a))tr(td(b)))'],
    ['[a](https://example.com/b)', 'p(a=https://example.com/b(a))'],
    ['![a](https://example.com/b.png)', 'p(a=https://example.com/b.png(a))'],
    ['[a](javascript:alert(1))', 'p([a](javascript:alert(1)))'],
    ['[a](/relative)', 'p([a](/relative))'],
    ['<script>a</script>', '<script>a</script>'],
    ['<b>a</b> & &amp;', 'p(<b>a</b> & &)'],
    [`${'>'.repeat(40)} a`, `p(${'>'.repeat(40)} a)`],
  ] as const)
    assert.equal(short(markdownOf(text)), tree, text);
});

test('a text is formatted by the service if it is short and has few characters that mean something in Markdown', () => {
  assert.ok(isQuick('1. **Trip type**: one-way\n2. `economy`\n\n'.repeat(10)));
  for (const text of ['*a '.repeat(151), '!'.repeat(151), 'a'.repeat(4001)]) assert.equal(isQuick(text), false, text.slice(0, 20));
});
