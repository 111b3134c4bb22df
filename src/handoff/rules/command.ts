import type { AnsweredBy } from '../model/hitl.ts';
import type { Claimant, PatchRequest, RespondRequest } from '../model/packet.ts';
import type { Decider } from './action-case.ts';
import type { AnsweredVia, LinkDetails } from './answer.ts';
import type { LeaseProof, LeaseTerms } from './lease.ts';
import { verbTo } from './packet-life.ts';
import type { GivenQuestion } from './question.ts';

/** A request to change an existing packet, from a caller or from a background job. */
export type Command =
  | { readonly kind: 'claim'; readonly claimant: Claimant; readonly terms?: LeaseTerms | undefined }
  | ({
      readonly kind: 'patch';
      readonly patch: PatchRequest;
      readonly agentId: string | undefined;
      /** The id of the question, if the patch asks one or makes one of an open one. */
      readonly questionId: string;
    } & LeaseProof)
  | ({
      readonly kind: 'ask';
      readonly question: GivenQuestion;
      readonly agentId: string | undefined;
      readonly questionId: string;
    } & LeaseProof)
  | { readonly kind: 'withdraw'; readonly agentId: string | undefined }
  | {
      readonly kind: 'respond';
      readonly answer: RespondRequest;
      readonly via?: AnsweredVia;
      readonly link?: LinkDetails;
      /** Who answers, and how that is known; left out: the name is only typed. */
      readonly by?: AnsweredBy | undefined;
      /** How the person is known. */
      readonly decider?: Decider;
      readonly actor?: string | undefined;
      /** The id of the standing approval that the answer makes, if it makes one. */
      readonly standingId?: string | undefined;
    }
  | { readonly kind: 'complete'; readonly agentId: string | undefined; readonly token?: string | undefined }
  | { readonly kind: 'delete'; readonly agentId: string | undefined; readonly token?: string | undefined; readonly byAdmin?: boolean }
  | ({ readonly kind: 'release'; readonly agentId: string | undefined; readonly byAdmin: boolean } & LeaseProof)
  | ({ readonly kind: 'renew'; readonly seconds: number | undefined } & LeaseProof)
  | { readonly kind: 'end_lease'; readonly agentId: string | undefined; readonly token: string | undefined }
  | { readonly kind: 'remove'; readonly actor: string }
  /** Without the id of an erasure it is by retention. */
  | { readonly kind: 'erase'; readonly actor: string; readonly erasureId: string | null }
  | { readonly kind: 'time_out' }
  | { readonly kind: 'expire_unclaimed' };

/** Whether a command asks a person. */
export const asksPerson = (command: Command): boolean =>
  command.kind === 'ask' || (command.kind === 'patch' && command.patch.status !== undefined && verbTo[command.patch.status] === 'ask');

/** Whether a command may need facts about an action. */
export const needsFacts = ({ kind }: Command): boolean => kind === 'ask' || kind === 'patch' || kind === 'respond' || kind === 'time_out';

/** Whether the command changes the packet's content. */
export function changesContent(command: Command): boolean {
  return command.kind === 'ask' || (command.kind === 'patch' && Object.keys(command.patch).some((field) => field !== 'status'));
}

/** Whether the command needs the whole packet: for its content, or for what the person is shown. */
export const needsWhole = (command: Command): boolean => command.kind === 'respond' || changesContent(command) || asksPerson(command);
