import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import { mailOf } from '../../../src/handoff/rules/mail.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { noticeOf } from '../../../src/handoff/rules/notice.ts';
import { slackOf } from '../../../src/handoff/rules/slack.ts';
import { decide } from '../../support/facts.ts';

test('a mail and a message to Slack show the tool and the arguments of an action, escaped, and say where all of them are', () => {
  const now = new Date('2026-03-01T09:30:00.000Z');
  const { packet } = newPacket(structuredClone(createExample) as never, { id: 'p', now, agentId: undefined });
  const noticeFor = (given: Record<string, unknown>) => {
    const question = { action: { tool: '<b>refund</b>', arguments: given } };
    const asked = decide(packet, { kind: 'ask', question, agentId: undefined, questionId: 'q', token: undefined }, now).packet;
    return noticeOf('asked', asked, { url: 'https://example.com/a' }, now);
  };
  const notice = noticeFor({ note: '<script>&' });
  const { text, html } = mailOf(notice);
  assert.match(text, /Tool:\n> <b>refund<\/b>\n\nArguments:\n> \{\n> {3}"note": "<script>&"/);
  assert.match(html, /&lt;b&gt;refund&lt;\/b&gt;.*&quot;note&quot;: &quot;&lt;script&gt;&amp;&quot;/s);
  assert.doesNotMatch(html, /<script|<b>/);
  const sections = slackOf(notice).blocks.flatMap((block) => (block.type === 'section' ? [block.text] : []));
  for (const shown of ['Tool\n<b>refund</b>', 'Arguments\n{\n  "note": "<script>&"\n}'])
    assert.deepEqual(sections.find((section) => section.text === shown)?.type, 'plain_text', shown);
  assert.match(mailOf(noticeFor({ note: 'x'.repeat(2000) })).text, /x…?\n> \(The page has all of them\.\)/);
});
