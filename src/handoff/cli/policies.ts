import type { PolicyRequest, ReplayRequest } from '../model/policy.ts';
import type { Context } from './context.ts';
import { located, readDocument } from './input.ts';
import { shown } from './output/show.ts';
import { type Options, showAnswer } from './rows.ts';

/** `policies set`: publishes the policy in a file, and says what will probably not work. */
export async function setPolicy(context: Context, { ifMatch }: Options, name = '', file = ''): Promise<void> {
  const document = await readDocument(file, context);
  const { putPolicy } = await context.client();
  const headers = ifMatch === undefined ? {} : { 'if-match': String(ifMatch) };
  try {
    const answer = await putPolicy.withResponse({ params: { name }, body: document.value as PolicyRequest, headers });
    for (const warning of answer.body.warnings) context.say(`Warning: ${warning}`);
    await showAnswer(
      context,
      answer,
      shown(({ name: own, version }) => [`${own} is published, version ${version}.`]),
    );
  } catch (error) {
    throw await located(error, document);
  }
}

/** `policies replay`: what a policy, stored or in a file, would have decided about past actions. */
export async function replayPolicy(context: Context, { since, until, limit }: Options, name = '', file?: string): Promise<void> {
  const document = file === undefined ? undefined : await readDocument(file, context);
  const client = await context.client();
  const given = { since, until, limit, policy: document?.value };
  const body = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as ReplayRequest;
  try {
    const answer = await client.replayPolicy.withResponse({ params: { name }, body });
    await showAnswer(
      context,
      answer,
      shown((found) => JSON.stringify(found, null, 2).split('\n')),
    );
  } catch (error) {
    throw document === undefined ? error : await located(error, document);
  }
}
