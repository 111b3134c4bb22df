// biome-ignore-all lint/performance/noBarrelFile: the package's export for programs that call the services.
export { createFallbackClient, type FallbackClient, type FallbackClientOptions, type TestEvent } from './fallback/client/client.ts';
export type { FallbackAnswer, FallbackBody, FallbackTypes } from './fallback/client/types.ts';
export type { ActionDecision, ApprovalOptions, ApproveOptions, RequiresApprovalOptions } from './handoff/client/approvals.ts';
export type { AskOptions } from './handoff/client/asking.ts';
export {
  createHandoffClient,
  type EventsOptions,
  type HandoffClient,
  type HandoffClientOptions,
  type StreamEvent,
  type StreamReset,
} from './handoff/client/client.ts';
export { ActionFailed, ActionRejected, CallChanged, NoAnswer, QuestionChanged } from './handoff/client/errors.ts';
export type { HandoffAnswer, HandoffBody, HandoffTypes } from './handoff/client/types.ts';
export { type DeliveredEvent, verifyWebhook, WebhookError } from './handoff/client/webhook.ts';
export type { WorkContext, WorkHandler, WorkOptions, WorkResult } from './handoff/client/worker.ts';
export type { CreateRequest, Packet, PacketSummary } from './handoff/model/packet.ts';
export type { CallOptions } from './kit/client.ts';
export { ApiError, ClientError, NetworkError, TimeoutError } from './kit/client-errors.ts';
export type { ClientDependencies, ClientStep } from './kit/connection.ts';
export type { Transport, TransportAnswer, TransportRequest } from './kit/transport.ts';
