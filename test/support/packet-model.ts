/** A packet as the model knows it. */
export interface ModelPacket {
  id: string;
  status: string;
  revision: number;
  priority: string;
  tags: string[];
  source: string;
  target: string;
  summary: string;
  decisions: string[];
  hitl: { required: boolean; answered: boolean; texts: readonly string[] } | undefined;
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

/** Words that packets of the model are made of: plain, accented, of two parts, and of a script without spaces. */
export const vocabulary = ['alpha', 'Beta', 'délta', 'x-ray', '漢字', 'e\u0301cole', '42'] as const;

/** The words of a text, said as plainly as the specification of search says it. */
export function tokensOf(text: string): string[] {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const found = plain.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}]+/gu) ?? [];
  return found.map((word) => word.slice(0, 64).toWellFormed());
}

/** What PATCH may move a packet to, from each status. */
const moves: Record<string, readonly string[]> = {
  created: ['awaiting_human', 'failed', 'expired'],
  claimed: ['in_progress', 'awaiting_human', 'completed', 'failed', 'expired'],
  in_progress: ['awaiting_human', 'completed', 'failed', 'expired'],
  awaiting_human: ['failed', 'expired'],
  failed: ['expired'],
  completed: [],
  expired: [],
};

/**
 * One tenant's packets as the specification tells of them, in a few lines and with nothing taken from the service.
 * Every operation gives the HTTP status it must be answered with.
 */
export class PacketModel {
  readonly #packets = new Map<string, ModelPacket>();
  /** Every id there has been, in the order of creation. */
  readonly ids: string[] = [];
  /** Entries of the trail. */
  entries = 0;

  get(id: string): ModelPacket | undefined {
    return this.#packets.get(id);
  }

  has(id: string): boolean {
    return this.#packets.has(id);
  }

  create(id: string, { source, target, summary, priority = 'normal', tags = [], hitl }: Attributes, at: string): ModelPacket {
    const asked = hitl === undefined ? undefined : { required: hitl.required, answered: false, texts: [hitl.question, hitl.reason] };
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
    this.#tell(packet, 'created');
    return packet;
  }

  chain(parent: string, id: string, attributes: Attributes, at: string): ModelPacket {
    const child = this.create(id, attributes, at);
    this.#tell(this.#packets.get(parent)!, 'chained');
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
    if (!moves[packet.status]!.includes('completed') || this.#lacksAnswer(packet)) return 409;
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
    this.entries += 1 - packet.events.length;
    return 204;
  }

  patch(id: string, status: string | undefined, changes: Changes): number {
    const packet = this.#packets.get(id);
    if (packet === undefined) return 404;
    const isMove = status !== undefined && status !== packet.status;
    const hasContent = Object.values(changes).some((value) => value !== undefined);
    if (isMove && !moves[packet.status]!.includes(status)) return 400;
    if (hasContent && packet.status === 'expired') return 409;
    const hitl =
      changes.hitl === undefined
        ? packet.hitl
        : {
            required: changes.hitl.required,
            answered: packet.hitl?.answered ?? false,
            texts: [changes.hitl.question, changes.hitl.reason],
          };
    if (isMove && status === 'completed' && hitl?.required === true && !hitl.answered) return 400;
    if (isMove && status === 'awaiting_human') {
      if (hitl === undefined) return 400;
      if (changes.hitl !== undefined) hitl.answered = false;
    }
    if (!isMove && !hasContent) return 200;
    packet.hitl = hitl;
    packet.priority = changes.priority ?? packet.priority;
    packet.tags = changes.tags ?? packet.tags;
    packet.summary = changes.summary ?? packet.summary;
    if (changes.decision !== undefined) packet.decisions.push(changes.decision);
    return this.#enter(packet, isMove ? status : packet.status, isMove ? status : 'updated');
  }

  /** Ids of the packets that pass the filter, newest first. */
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

  /** Ids, in their own order, of the packets in which every phrase occurs. */
  search(phrases: readonly string[], status: string | undefined, priority: string | undefined): string[] {
    const wanted = phrases.map((phrase) => ` ${tokensOf(phrase).join(' ')} `);
    const passing = [...this.#packets.values()].filter((packet) => {
      const told = [packet.summary, ...packet.decisions.map((decision) => `${decision} because`), ...(packet.hitl?.texts ?? [])];
      // Part by part: a phrase never runs from one into the next.
      const text = told.map((part) => ` ${tokensOf(part).join(' ')} `).join('_');
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

  #enter(packet: ModelPacket, status: string, event = status): number {
    packet.status = status;
    packet.revision += 1;
    this.#tell(packet, event);
    return 200;
  }

  #tell(packet: ModelPacket, event: string): void {
    packet.events.push(event);
    this.entries += 1;
  }
}
