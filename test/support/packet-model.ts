import type { Status } from '../../src/handoff/model/common.ts';

/** A packet in the model. */
export interface ModelPacket {
  id: string;
  status: Status;
  revision: number;
  priority: string;
  tags: string[];
  source: string;
  target: string;
  summary: string;
  decisions: string[];
  hitl: { required: boolean; asked: boolean; answered: boolean; texts: readonly string[] } | undefined;
  holder: string | null;
  created_at: string;
  /** Its history's event types, oldest first. */
  events: string[];
}

interface Attributes {
  source: string;
  target: string;
  summary: string;
  priority?: string | undefined;
  tags?: string[] | undefined;
  hitl?: { required: boolean; reason: string; question: string } | undefined;
}

interface Changes {
  priority?: string | undefined;
  tags?: string[] | undefined;
  summary?: string | undefined;
  decision?: string | undefined;
  hitl?: { required: boolean; reason: string; question: string } | undefined;
}

interface Filter {
  statuses?: readonly string[] | undefined;
  source?: string | undefined;
  target?: string | undefined;
  tags?: readonly string[] | undefined;
  priority?: string | undefined;
  hitl?: boolean | undefined;
  after?: string | undefined;
  before?: string | undefined;
}

/** The vocabulary of the model's packets: plain, accented, hyphenated, and in a script without spaces. */
export const vocabulary = ['alpha', 'Beta', 'délta', 'x-ray', '漢字', 'e\u0301cole', '42'] as const;

/** Texts in which search equates what `tokensOf` takes for different: digits of other scripts, signs that are not seen, letters with a stroke. */
export const isEquated = (text: string): boolean => /[\p{Nd}--[0-9]]|[\p{Cf}\u0640ßœæþøłđðħŧıĸς]/iv.test(text.normalize('NFKD'));

/** The words of a text, by a direct reading of the specification of search. */
export function tokensOf(text: string): string[] {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const found = plain.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}]+/gu) ?? [];
  return found.map((word) => word.slice(0, 64).toWellFormed());
}

/** The statuses that a PATCH can set, by the current status. */
export const moves: Record<Status, readonly Status[]> = {
  created: ['awaiting_human', 'failed', 'expired'],
  claimed: ['in_progress', 'awaiting_human', 'completed', 'failed', 'expired'],
  in_progress: ['awaiting_human', 'completed', 'failed', 'expired'],
  awaiting_human: ['failed', 'expired'],
  failed: ['expired'],
  completed: [],
  expired: [],
};

/**
 * A minimal model of one tenant's packets, written from the specification and independent of the service.
 * Every operation returns the expected HTTP status.
 */
export class PacketModel {
  readonly #packets = new Map<string, ModelPacket>();
  /** All ids so far, in the order of creation. */
  readonly ids: string[] = [];
  /** The number of entries in the trail. */
  entries = 0;

  get(id: string): ModelPacket | undefined {
    return this.#packets.get(id);
  }

  has(id: string): boolean {
    return this.#packets.has(id);
  }

  create(id: string, { source, target, summary, priority = 'normal', tags = [], hitl }: Attributes, at: string): ModelPacket {
    const asked =
      hitl === undefined ? undefined : { required: hitl.required, asked: false, answered: false, texts: [hitl.question, hitl.reason] };
    const packet: ModelPacket = {
      id,
      status: 'created',
      revision: 1,
      priority,
      tags,
      source,
      target,
      summary,
      decisions: [],
      hitl: asked,
      holder: null,
      created_at: at,
      events: [],
    };
    this.#packets.set(id, packet);
    this.ids.push(id);
    this.#record(packet, 'created');
    return packet;
  }

  chain(parent: string, id: string, attributes: Attributes, at: string): ModelPacket {
    const child = this.create(id, attributes, at);
    this.#record(this.#packets.get(parent)!, 'chained');
    return child;
  }

  claim(id: string, agent: string): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    if (packet.status === 'expired') return 410;
    if (packet.status !== 'created') return 409;
    packet.holder = agent;
    return this.#enter(packet, 'claimed');
  }

  respond(id: string): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    if (packet.status !== 'awaiting_human') return 409;
    packet.hitl!.answered = true;
    packet.holder ??= packet.target;
    return this.#enter(packet, 'claimed', 'hitl_responded');
  }

  complete(id: string): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    if (!moves[packet.status].includes('completed') || this.#lacksAnswer(packet)) return 409;
    return this.#enter(packet, 'completed');
  }

  expire(id: string): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    if (packet.status === 'expired') return 409;
    this.#enter(packet, 'expired');
    return 204;
  }

  remove(id: string): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    this.#packets.delete(id);
    // Its entries stay without their details.
    this.entries += 1;
    return 204;
  }

  patch(id: string, status: Status | undefined, changes: Changes): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    const isMove = status !== undefined && status !== packet.status;
    const hasContent = Object.values(changes).some((value) => value !== undefined);
    if (isMove && !moves[packet.status].includes(status)) return 400;
    if (hasContent && packet.status === 'expired') return 409;
    const asks = isMove && status === 'awaiting_human';
    const given = changes.hitl && { required: changes.hitl.required, texts: [changes.hitl.question, changes.hitl.reason] };
    const { asked = false, answered = false, ...earlier } = packet.hitl ?? {};
    // What was asked never changes after its answer, or the end of its packet.
    const isClosed = asked && packet.status !== 'awaiting_human';
    if (isClosed && !asks && given !== undefined && JSON.stringify(given) !== JSON.stringify(earlier)) return 409;
    const hitl = given === undefined ? packet.hitl : { ...given, asked, answered };
    if (isMove && status === 'completed' && hitl?.required === true && !hitl.answered) return 400;
    if (asks && hitl === undefined) return 400;
    if (asks) Object.assign(hitl!, { asked: true, answered: false });
    if (!isMove && !hasContent) return 200;
    packet.hitl = hitl;
    packet.priority = changes.priority ?? packet.priority;
    packet.tags = changes.tags ?? packet.tags;
    packet.summary = changes.summary ?? packet.summary;
    if (changes.decision !== undefined) packet.decisions.push(changes.decision);
    return this.#enter(packet, isMove ? status : packet.status, isMove ? status : 'updated');
  }

  /** The ids of the packets that match the filter, newest first. */
  list({ statuses, source, target, tags = [], priority, hitl, after, before }: Filter): string[] {
    const passing = [...this.#packets.values()].filter(
      (packet) =>
        (statuses === undefined || statuses.includes(packet.status)) &&
        (source === undefined || packet.source === source) &&
        (target === undefined || packet.target === target) &&
        tags.every((tag) => packet.tags.includes(tag)) &&
        (priority === undefined || packet.priority === priority) &&
        (hitl === undefined || (packet.hitl?.required ?? false) === hitl) &&
        (after === undefined || packet.created_at >= after) &&
        (before === undefined || packet.created_at <= before),
    );
    return passing.map(({ id }) => id).reverse();
  }

  /** The ids of the packets that contain every phrase, in ascending order. */
  search(phrases: readonly string[], status: string | undefined, priority: string | undefined): string[] {
    const wanted = phrases.map((phrase) => ` ${tokensOf(phrase).join(' ')} `);
    const passing = [...this.#packets.values()].filter((packet) => {
      const parts = [packet.summary, ...packet.decisions.map((decision) => `${decision} because`), ...(packet.hitl?.texts ?? [])];
      // Separated, because a phrase never matches across two parts.
      const text = parts.map((part) => ` ${tokensOf(part).join(' ')} `).join('_');
      return (
        wanted.every((phrase) => text.includes(phrase)) &&
        (status === undefined || packet.status === status) &&
        (priority === undefined || packet.priority === priority)
      );
    });
    return passing.map(({ id }) => id).sort();
  }

  #lacksAnswer({ hitl }: ModelPacket): boolean {
    return hitl?.required === true && !hitl.answered;
  }

  #enter(packet: ModelPacket, status: Status, event: string = status): number {
    packet.status = status;
    packet.revision += 1;
    this.#record(packet, event);
    return 200;
  }

  #record(packet: ModelPacket, event: string): void {
    packet.events.push(event);
    this.entries += 1;
  }
}
