import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mailOf } from '../../../src/handoff/rules/mail.ts';

const notice = {
  heading: 'A asks',
  subject: 'A asks: Refund?',
  hint: 'Two hours are left.',
  parts: [{ title: 'Reason', text: 'Over 50\nby 9' }],
};

test('a mail has the heading, the question as a quotation, the link, the hint and the parts, as text and as HTML', () => {
  const mail = mailOf({ ...notice, question: 'Refund\n59.90 <all>?', link: 'https://example.com/a?b&c' });
  assert.equal(mail.subject, 'A asks: Refund?');
  assert.equal(
    mail.text,
    'A asks:\n\n> Refund\n> 59.90 <all>?\n\nAnswer here:\nhttps://example.com/a?b&c\n\nTwo hours are left.\n\nReason:\n> Over 50\n> by 9\n',
  );
  assert.match(
    mail.html,
    /A asks:<.*Refund\n59\.90 &lt;all&gt;\?<.*href="https:\/\/example\.com\/a\?b&amp;c".*Two hours.*<h2[^>]*>Reason</s,
  );
});

test('a mail without a question ends its heading with a full stop, and has no empty part', () => {
  const { text, html } = mailOf({ ...notice, hint: '', parts: [] });
  assert.equal(text, 'A asks.\n');
  assert.equal(html.match(/<p|<blockquote|<h2|<a /g)?.join(), '<p');
});
