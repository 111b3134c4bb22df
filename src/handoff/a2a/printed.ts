import { hash } from 'node:crypto';
import { type Artifact, Artifact as ArtifactJson, StreamResponse } from '@a2a-js/sdk';

import type { Packet } from '../model/packet.ts';
import { artifactsOf, statusOf, taskOf } from './task.ts';

/** What was made of a packet for the streams and notifications of its task. */
interface Printed {
  artifacts?: readonly ArtifactOnce[];
  /** A response as JSON by what it shows, and for which parameters it was printed last. */
  readonly texts: Map<string, { readonly parameters: string; readonly text: Buffer }>;
}

/** Kept as long as the packet is, which all who read the same revision share. */
const kept = new WeakMap<Packet, Printed>();

function printedOf(packet: Packet): Printed {
  const known = kept.get(packet) ?? { texts: new Map() };
  kept.set(packet, known);
  return known;
}

/** A result of a task, and a digest of its content. */
interface ArtifactOnce {
  readonly artifact: Artifact;
  readonly digest: string;
}

/** The results of a task, made once for each revision of its packet. */
export function artifactsOnce(packet: Packet): readonly ArtifactOnce[] {
  const printed = printedOf(packet);
  printed.artifacts ??= artifactsOf(packet).map((artifact) => ({
    artifact,
    digest: hash('sha256', JSON.stringify(ArtifactJson.toJSON(artifact)), 'base64'),
  }));
  return printed.artifacts;
}

/** A response as JSON, printed once for all streams and notifications that send it. */
function once(packet: Packet, shows: string, parameters: string, payload: () => StreamResponse['payload']): Buffer {
  const { texts } = printedOf(packet);
  const known = texts.get(shows);
  if (known?.parameters === parameters) return known.text;
  const text = Buffer.from(JSON.stringify(StreamResponse.toJSON({ payload: payload() })));
  texts.set(shows, { parameters, text });
  return text;
}

/** The response with a task as it is. */
export const taskText = (packet: Packet, contextId: string, historyLength?: number): Buffer =>
  once(packet, 'task', `${contextId} ${historyLength}`, () => ({ $case: 'task', value: taskOf(packet, contextId, historyLength) }));

/** The response with a result of a task. */
export const artifactText = (packet: Packet, contextId: string, artifact: Artifact): Buffer =>
  once(packet, `artifact ${artifact.artifactId}`, contextId, () => ({
    $case: 'artifactUpdate',
    value: { taskId: packet.id, contextId, artifact, append: false, lastChunk: true, metadata: undefined },
  }));

/** The response with the status of a task. */
export const statusText = (packet: Packet, contextId: string): Buffer =>
  once(packet, 'status', contextId, () => ({
    $case: 'statusUpdate',
    value: { taskId: packet.id, contextId, status: statusOf(packet, contextId), metadata: undefined },
  }));
