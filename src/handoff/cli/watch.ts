import { commaList } from '../../kit/comma-list.ts';
import type { Context } from './context.ts';
import { cut } from './output/text.ts';
import { eventLine } from './output/views.ts';
import { type Options, showAnswer } from './rows.ts';

/** `packets watch`: prints events as they happen, until it is interrupted. */
export async function watch(context: Context, options: Options): Promise<void> {
  const {
    status = '',
    packet = [],
    agent = [],
    since,
  } = options as { status?: string; packet?: string[]; agent?: string[]; since?: string };
  const subscribe = [
    ...commaList(status).map((one) => `status:${one}`),
    ...packet.map((id) => `packet:${id}`),
    ...agent.map((id) => `agent:${id}`),
  ];
  for await (const event of (await context.client()).events({ subscribe, lastEventId: since })) {
    const answer = { status: 200, headers: {}, body: event, text: JSON.stringify(event) };
    await showAnswer(context, answer, ({ format, out }, { text }) => {
      if (format === 'json') out.event(text);
      else out.line(cut(eventLine(event), out.columns ?? Number.POSITIVE_INFINITY));
    });
  }
}
