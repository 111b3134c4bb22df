import { type Finding, ofWaits } from '../model/finding.ts';
import type { Course, Difference } from '../model/rehearsal.ts';
import { noAnswer } from '../model/request.ts';
import type { PromptResult } from '../model/test.ts';
import type { Groups } from './rehearsal.ts';

/** The findings by which a gateway calls nobody, by their kinds. */
const callNobody: readonly (string | undefined)[] = ['refused_file', 'no_default'];

/** The kind of findings by which it never calls their provider. */
const neverCalls = 'unknown_provider';

const callsOf = ({ calls }: Course): string[] => calls.flatMap(({ provider, calls: count }) => Array<string>(count).fill(provider));

/** Whether the rehearsal ended a prompt, because the gateway had not answered in time. */
export const isUnanswered = ({ error, received }: PromptResult): boolean => error === 'timeout' && received?.error === noAnswer;

/** The prompts of a difference, as far as a result has them: beside the first one, those after it with the same calls and failure. */
export function promptsOf(difference: Difference, results: readonly PromptResult[]): PromptResult[] {
  const { provider, condition, kind, stream, first_index, expected, actual } = difference;
  const endsWith = (attempts: readonly { provider: string }[], course: Course) => {
    const calls = callsOf(course);
    const last = attempts.slice(attempts.length - calls.length);
    return attempts.length >= calls.length && last.every((attempt, index) => attempt.provider === calls[index]);
  };
  const isAlike = (prompt: PromptResult) => {
    const said = prompt.expected?.attempts ?? [];
    // Differences of cool-downs are the same with other calls.
    if (kind === 'cooldown') return said.some((attempt) => attempt.provider === provider);
    const hasFailed = condition === null || said.some((attempt) => attempt.provider === provider && attempt.condition === condition);
    return hasFailed && endsWith(said, expected) && endsWith(prompt.attempts, actual);
  };
  return results.filter(
    (prompt) =>
      prompt.index === first_index ||
      (prompt.index > first_index &&
        prompt.agrees === false &&
        (stream === null || prompt.request === undefined || prompt.request.stream === stream) &&
        isAlike(prompt)),
  );
}

/**
 * Whether a finding that is about a difference can be its cause. One by which the gateway does not call a provider, or nobody, causes
 * none in which it does. One by which it waits longer causes that the calls end at the silent provider, with a late answer or none
 * until the rehearsal ended the prompt.
 * @param prompts those of the difference
 */
export function mayCause(
  { kind, provider }: Partial<Pick<Finding, 'kind'>> & Pick<Finding, 'provider'>,
  difference: Difference,
  prompts: readonly PromptResult[],
  groups: Groups = new Map(),
): boolean {
  const calls = callsOf(difference.actual);
  if (callNobody.includes(kind)) return calls.length === 0;
  if (kind === neverCalls) return !calls.some((called) => called === provider);
  if (kind !== ofWaits) return true;
  const groupOf = (name: string) => groups.get(name) ?? name;
  const isOther = (name: string) => groupOf(name) !== groupOf(difference.provider);
  const said = callsOf(difference.expected);
  const most = said.some(isOther) ? said.findIndex(isOther) : said.length;
  const isLate = (prompt: PromptResult) => isUnanswered(prompt) || (prompt.success && prompt.served_by === null);
  return difference.status_code === null && !calls.some(isOther) && calls.length <= most && prompts.length > 0 && prompts.every(isLate);
}
