import type { TestAnswer, TestService } from './service.ts';

export interface A2aOptions {
  /** Null: none. */
  key?: string | null;
  headers?: Record<string, string>;
  /** The agent in X-Agent-Id; none by default. */
  agent?: string;
  /** The version in A2A-Version; none if null. */
  version?: string | null;
}

/** The headers and the body of a request of A2A over JSON-RPC. */
export function a2aRequest(method: string, params: unknown, { agent, version = '1.0', headers = {} }: A2aOptions = {}) {
  return {
    headers: {
      'content-type': 'application/json',
      ...headers,
      ...(version === null ? {} : { 'a2a-version': version }),
      ...(agent === undefined ? {} : { 'x-agent-id': agent }),
    },
    body: { jsonrpc: '2.0', id: 7, method, params },
  };
}

/** Sends a request of A2A. */
export function a2a(service: Pick<TestService, 'call'>, method: string, params: unknown, options: A2aOptions = {}): Promise<TestAnswer> {
  const { key } = options;
  return service.call('POST', '//a2a', { ...a2aRequest(method, params, options), ...(key === undefined ? {} : { key }) });
}

let messages = 0;

/** The parameters of a method that sends a message; it does not wait for the answer. */
export function messageOf(text: string, fields: Record<string, unknown> = {}, configuration: Record<string, unknown> = {}) {
  messages += 1;
  return {
    message: { messageId: `message-${messages}`, role: 'ROLE_USER', parts: [{ text }], metadata: { target_agent: 'resolver' }, ...fields },
    configuration: { returnImmediately: true, ...configuration },
  };
}
