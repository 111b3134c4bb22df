import { randomUUID } from 'node:crypto';
import { SendMessageRequest, type Task, type TaskStatus, taskStateToJSON } from '@a2a-js/sdk';
import { ClientFactory, createAuthenticatingFetchWithRetry, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

/** A change of a task that the agent follows. */
export interface Change {
  /** Such as `input-required`. */
  readonly state: string;
  /** The text of the status, such as the question; of an artifact, its text. */
  readonly text: string;
}

/** A connection by A2A. */
export interface A2aAgent {
  readonly id: string;
  /** The changes of a task from now until it is over, beginning with its present state. */
  follow(taskId: string, signal: AbortSignal): AsyncGenerator<Change, void>;
  /** Sends a message for an agent, in the context of a task; returns the new task. */
  send(contextId: string, targetAgent: string, text: string): Promise<Task>;
}

const textIn = (parts: readonly { content?: { $case: string; value?: unknown } | undefined }[] = []): string =>
  parts.flatMap(({ content }) => (content?.$case === 'text' ? [String(content.value)] : [])).join(' ');

const changeOf = (status: TaskStatus | undefined): Change => ({
  state: taskStateToJSON(status?.state ?? 0)
    .replace('TASK_STATE_', '')
    .toLowerCase()
    .replaceAll('_', '-'),
  text: textIn(status?.message?.parts),
});

/** Connects to the service by its agent card. */
export async function connectByA2a(origin: string, key: string, id: string): Promise<A2aAgent> {
  const headers = { 'X-API-Key': key, 'X-Agent-Id': id };
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => headers,
    shouldRetryWithHeaders: async () => undefined,
  });
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(origin);
  return {
    id,
    async *follow(taskId, signal) {
      for await (const { payload } of client.resubscribeTask({ id: taskId, tenant: '' }, { signal })) {
        if (payload?.$case === 'task' || payload?.$case === 'statusUpdate') yield changeOf(payload.value.status);
        if (payload?.$case === 'artifactUpdate') yield { state: 'artifact', text: textIn(payload.value.artifact?.parts) };
      }
    },
    async send(contextId, targetAgent, text) {
      const message = {
        messageId: randomUUID(),
        role: 'ROLE_USER',
        contextId,
        parts: [{ text }],
        metadata: { target_agent: targetAgent },
      };
      const sent = await client.sendMessage(SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: true } }));
      if (!('status' in sent)) throw new Error('The service answered with a message, not with a task.');
      return sent;
    },
  };
}
