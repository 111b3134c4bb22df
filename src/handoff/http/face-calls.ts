import type { TraceHeaders } from '../../kit/trace-context.ts';
import { type CallApi, headersOf } from '../face/call.ts';
import type { Caller } from '../service/authentication.ts';
import type { LocalCall, LocalCaller } from './local.ts';

/** The operations of the API for a face, in its caller's name; `trace`: the headers of the request's trace. */
export const callsFor =
  (call: LocalCall<Caller>, by: LocalCaller<Caller>, trace: TraceHeaders | undefined): CallApi =>
  (route, { names = {}, ...request }) =>
    call(route, { ...request, actor: names.agent, headers: { ...headersOf(names), ...trace } }, by);
