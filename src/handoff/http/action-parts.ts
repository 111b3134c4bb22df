import { offeredBy } from '../model/offered.ts';
import { scopeChoices, timeChoices } from '../model/remembered.ts';
import { escapeHtml } from '../rules/html.ts';
import type { AskingPacket } from '../service/answer-links.ts';

const json = (value: unknown) => `<pre dir="ltr">${escapeHtml(JSON.stringify(value, null, 2))}</pre>`;
const section = (heading: string, body: string) => `<section><h2>${heading}</h2>${body}</section>`;
const text = (content: string) => `<p class="text" dir="auto">${escapeHtml(content)}</p>`;

/** The action that a question is about, whole: what is approved is never cut. Empty for other questions. */
export function actionOf({ hitl }: AskingPacket): string {
  const { action, edited, approvals = [], step } = hitl;
  if (action === undefined) return '';
  const { tool, description = '', arguments: proposed } = action;
  const shown = edited?.arguments ?? proposed;
  const changed = edited === undefined ? '' : `${text(`Changed by ${edited.name}. The agent proposed:`)}${json(proposed)}`;
  const given = approvals.map(
    ({ name, decision, void: isVoid }) =>
      `<li><bdi>${escapeHtml(name)}</bdi> ${decision === 'edit' ? 'changed it' : 'approved'}${isVoid ? ', of another version' : ''}</li>`,
  );
  const progress = step
    ? `Step ${step.index} of ${step.of}: ${step.given} of ${step.count} have approved. Asked: ${step.from.join(', ')}.`
    : '';
  return [
    section('Action', `<p><b><bdi>${escapeHtml(tool)}</bdi></b></p>${description === '' ? '' : text(description)}${json(shown)}${changed}`),
    progress === '' && given.length === 0 ? '' : section('Approvals', `${progress === '' ? '' : text(progress)}<ul>${given.join('')}</ul>`),
  ].join('');
}

const words = { approve: 'Approve', edit: 'Approve with these arguments', reject: 'Reject', respond: 'Answer the agent instead' } as const;

/** What a person had entered when the answer was refused. */
export interface EnteredDecision {
  readonly message?: string | undefined;
  readonly arguments?: string | undefined;
  readonly remember?: string | undefined;
  readonly seconds?: string | undefined;
}

/** The choices of how long an approval stands; empty where it may not. */
function standingFields({ action, remember }: AskingPacket['hitl'], { remember: scope = '', seconds = '' }: EnteredDecision): string {
  if (remember === undefined || !offeredBy(action!).includes('approve')) return '';
  const option = (value: string, label: string, chosen: string) =>
    `<option value="${value}"${value === chosen ? ' selected' : ''}>${escapeHtml(label)}</option>`;
  const scopes = scopeChoices(remember, action!.tool).map(([value, label]) => option(value, label, scope));
  const times = timeChoices(remember).map(([value, label]) => option(String(value), label, seconds));
  return `<details${scope === '' ? '' : ' open'}><summary>Let my approval stand for later calls</summary><label>Approve later too <small>with Approve</small><select name="remember">${option('', 'Only this one', scope)}${scopes.join('')}</select></label><label>For<select name="seconds">${times.join('')}</select></label></details>`;
}

/** The fields of the form that decides about an action. */
export function decisionFields({ hitl }: AskingPacket, entered: EnteredDecision, mayLetStand: boolean): string {
  const offered = offeredBy(hitl.action!);
  const button = (word: keyof typeof words, kind = '') =>
    offered.includes(word) ? `<button type="submit" name="decision" value="${word}"${kind}>${words[word]}</button>` : '';
  const shown = entered.arguments ?? JSON.stringify(hitl.edited?.arguments ?? hitl.action!.arguments, null, 2);
  const edit = offered.includes('edit')
    ? `<details${entered.arguments === undefined ? '' : ' open'}><summary>Change the arguments</summary><label>Arguments, as JSON<textarea name="arguments" rows="8" spellcheck="false">${escapeHtml(shown)}</textarea></label>${button('edit', ' class="plain"')}</details>`
    : '';
  const message = `<label>Message to the agent <small>with a rejection or an answer</small><textarea name="message" maxlength="1024">${escapeHtml(entered.message ?? '')}</textarea></label>`;
  return `<div class="options">${button('approve')}${button('reject', ' class="danger"')}${button('respond', ' class="plain"')}</div>${mayLetStand ? standingFields(hitl, entered) : ''}${message}${edit}`;
}
