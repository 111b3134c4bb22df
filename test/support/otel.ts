import { AsyncLocalStorage } from 'node:async_hooks';

import { type Context, type ContextManager, ROOT_CONTEXT, type TextMapPropagator, trace } from '@opentelemetry/api';

/** Keeps the active context through what is awaited, as the packages of OpenTelemetry for Node do. */
export class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  with: ContextManager['with'] = (context, work, self, ...given) => this.#storage.run(context, () => work.call(self as never, ...given));
  bind = <T>(_: Context, target: T): T => target;
  enable = () => this;
  disable = () => this;
}

/** Reads W3C Trace Context, as the propagator of OpenTelemetry does. */
export const traceContext: TextMapPropagator = {
  inject: () => undefined,
  fields: () => ['traceparent'],
  extract(parent, carrier, getter) {
    const [, traceId = '', spanId = ''] = String(getter.get(carrier, 'traceparent')).split('-');
    return trace.setSpanContext(parent, { traceId, spanId, traceFlags: 1, isRemote: true });
  },
};
