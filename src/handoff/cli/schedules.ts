import type { ScheduleRequest } from '../model/schedule.ts';
import type { Context } from './context.ts';
import { located, readDocument } from './input.ts';
import { shown } from './output/show.ts';
import { type Options, showAnswer } from './rows.ts';

/** `schedules set`: writes the schedule in a file. */
export async function setSchedule(context: Context, { ifMatch }: Options, name = '', file = ''): Promise<void> {
  const document = await readDocument(file, context);
  const { putSchedule } = await context.client();
  const headers = ifMatch === undefined ? {} : { 'if-match': String(ifMatch) };
  try {
    await showAnswer(
      context,
      await putSchedule.withResponse({ params: { name }, body: document.value as ScheduleRequest, headers }),
      shown(({ name: own, version, next_at }) => [
        `${own} is written, version ${version}; ${next_at === null ? 'it is switched off' : `next at ${next_at}`}.`,
      ]),
    );
  } catch (error) {
    throw await located(error, document);
  }
}
