import { cut } from './cut.ts';
import type { Notice } from './notice.ts';

/** The longest texts of a header and of a section, in characters, by Slack's Block Kit. */
const maxHeader = 150;
const maxSection = 3000;

/** Text that Slack shows as it is, without links, mentions, emphasis or emoji. */
const plainText = (text: string, length = maxSection) => ({ type: 'plain_text', text: cut(text, length), emoji: false }) as const;

/** Text where Slack reads `<...>` as a link or a mention. */
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The payload of a notice for one of Slack's incoming webhooks: blocks with a button, and a line for notifications. */
export function slackOf({ heading, subject, question, parts, link, hint }: Notice) {
  const section = (text: string) => ({ type: 'section', text: plainText(text) }) as const;
  const button = (url: string) =>
    ({
      type: 'actions',
      elements: [{ type: 'button', action_id: 'answer', text: plainText('Answer'), url, style: 'primary' }],
    }) as const;
  return {
    text: escaped(subject),
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header', text: plainText(heading, maxHeader) } as const,
      ...(question === undefined || question === '' ? [] : [section(question)]),
      ...(link === undefined ? [] : [button(link)]),
      ...(hint === '' ? [] : [{ type: 'context', elements: [plainText(hint)] } as const]),
      ...parts.map(({ title, text }) => section(`${title}\n${text}`)),
    ],
  };
}
