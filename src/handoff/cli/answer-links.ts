import { done, list } from './output/show.ts';
import * as view from './output/views.ts';
import { type Row, row, whole } from './rows.ts';

/** The commands of answer links. */
export const answerLinks: readonly Row[] = [
  row('createAnswerLink', {
    name: 'packets answer-link',
    text: "make a link to a page on which a person answers a packet's question; it is shown only once",
    flags: [
      { flags: '--responder <name>', text: 'the person in whose name it answers (default: the person enters a name)' },
      { flags: '--sign-in', text: 'the page asks for a sign-in before it shows the question', field: 'sign_in' },
      {
        flags: '--expires-in <seconds>',
        text: 'how long it is valid (default: a day; at most 30 days)',
        parse: whole(1, 2_592_000),
      },
    ],
    show: view.newAnswerLink,
  }),
  row('listAnswerLinks', {
    name: 'packets answer-links',
    text: "list a packet's answer links, newest first",
    show: list(view.answerLinkColumns, 'answer links'),
  }),
  row('deleteAnswerLink', { name: 'packets revoke-link', text: 'revoke an answer link', show: done('The link is revoked.') }),
];
