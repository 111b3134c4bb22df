import { escapeHtml } from './html.ts';
import type { Notice } from './notice.ts';

/** A mail without its addresses. */
export interface Mail {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** A packet's text as a quotation, so that none of its lines can pose as a line of the message. */
const quoted = (text: string): string =>
  text
    .split(/[\n\u2028\u2029]/)
    .map((one) => `> ${one}`)
    .join('\n');

const paragraph = (text: string): string => `<p style="white-space:pre-wrap">${escapeHtml(text)}</p>`;
const quotation = (text: string, style = ''): string =>
  `<blockquote dir="auto" style="margin:0 0 16px;padding-left:12px;border-left:3px solid #c5c7d0;white-space:pre-wrap;${style}">${escapeHtml(text)}</blockquote>`;
const button = (url: string): string =>
  `<p><a href="${escapeHtml(url)}" style="display:inline-block;padding:10px 18px;border-radius:6px;background:#4450c8;color:#ffffff;text-decoration:none;font-weight:bold">Answer</a></p>`;

/** The mail of a notice, as text and as HTML. The link comes before the packet's longer texts. */
export function mailOf({ heading, subject, question, parts, link, hint }: Notice): Mail {
  const text = [
    `${heading}${question === undefined ? '.' : ':'}`,
    ...(question === undefined ? [] : [quoted(question)]),
    ...(link === undefined ? [] : [`Answer here:\n${link}`]),
    ...(hint === '' ? [] : [hint]),
    ...parts.map(({ title, text: body }) => `${title}:\n${quoted(body)}`),
  ];
  const html = [
    paragraph(`${heading}${question === undefined ? '.' : ':'}`),
    ...(question === undefined ? [] : [quotation(question, 'font-size:18px')]),
    ...(link === undefined ? [] : [button(link)]),
    ...(hint === '' ? [] : [paragraph(hint)]),
    ...parts.flatMap(({ title, text: body }) => [`<h2 style="font-size:14px">${escapeHtml(title)}</h2>`, quotation(body)]),
  ];
  const style = 'max-width:600px;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere';
  return {
    subject,
    text: `${text.join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><body><div style="${style}">${html.join('')}</div></body></html>`,
  };
}
