import { retryAfterForms } from '../../../kit/retry-after.ts';
import type { Condition, Rule } from '../../model/chain.ts';
import { ofNoAnswer, orderedSigns, withheldReasons } from '../conditions.ts';
import type { Protocol } from '../kinds.ts';
import { addressVariable, baseOf, keyEnv, speaksAnthropic, warnIfUnknown } from './kind-names.ts';
import { type ExportedProvider, type Source, warnOfUnsupportedFields } from './target.ts';

/** What a module for a library consists of, besides the chain's rules and providers. */
interface Library {
  /** The lines that import the clients of each protocol, as far as the chain needs them. */
  readonly clients: Readonly<Record<Protocol, string>>;
  /** The head of the module with the imports it needs. */
  readonly head: (clients: string) => string;
  /** The comment above the list of providers. */
  readonly order: string;
  /** Additional fields of a provider. */
  readonly fields?: (exported: ExportedProvider) => string;
  /** The code that makes the model of a provider, with the code that reads its key. */
  readonly model: (exported: ExportedProvider, apiKey: string) => string;
  /** The rest of the module: how the library tries the providers, and `failureOf`. */
  readonly body: string;
}

/** The module of a chain for a library. */
export function moduleText(source: Source, { clients, head, order, fields = () => '', model, body }: Library): string {
  const entries = source.providers.map((exported) => {
    const { provider } = exported;
    const apiKey = `process.env[${literal(keyEnv(exported))}]`;
    warnIfUnknown(exported);
    return `  {
    name: ${literal(provider.name)},
    timeoutMs: ${provider.timeout_ms},
${fields(exported)}    decisions: ${decisionsCode(source, exported)},
    model: () => ${model(exported, apiKey)},
  },`;
  });
  const hasAnthropic = source.providers.some(({ provider }) => speaksAnthropic(provider));
  const hasOpenai = source.providers.some(({ provider }) => !speaksAnthropic(provider));
  warnOfUnsupportedFields(source);
  return `${head(`${hasAnthropic ? clients.anthropic : ''}${hasOpenai ? clients.openai : ''}`)}
/** The chain's name. */
export const name = ${literal(source.chain.name)};

${rulesCode(source)}
/** ${order} */
const providers = [
${entries.join('\n')}
];

${body}
${guardCode}`;
}

/** Code for the base URL of a provider's API, which a variable may have. */
export function baseCode(exported: ExportedProvider): string {
  const variable = addressVariable(exported.provider);
  return variable === undefined ? literal(baseOf(exported)) : `process.env[${literal(variable)}]`;
}

/** A value as a JavaScript literal. U+2028 and U+2029 are escaped, since they end a line in comments. */
export const literal = (value: unknown) => JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** A rule in generated code. */
function ruleLiteral({ action, max_retries, wait_ms, backoff, max_wait_ms, respect_retry_after, then, to }: Rule): string {
  const onward = to === null ? '' : `, to: ${literal(to)}`;
  if (action !== 'retry') return `{ action: ${literal(action)}${onward} }`;
  return `{ action: 'retry', retries: ${max_retries}, waitMs: ${wait_ms}, backoff: ${literal(backoff)}, maxWaitMs: ${max_wait_ms}, respectRetryAfter: ${respect_retry_after}, then: ${literal(then)}${onward} }`;
}

/** Code for the list of rules. */
function rulesCode({ chain }: Source): string {
  const lines = chain.fallback_rules.map((rule) => `  ${ruleLiteral(rule)},\n`);
  return `/** The chain's rules; each counts its own retries, for each provider and call. */\nconst rules = [\n${lines.join('')}];\nconst failover = { action: 'failover' };\nconst fail = { action: 'fail' };\n`;
}

/** Code for the decisions of a provider, by condition or by condition and status; failover, the default, is omitted. */
function decisionsCode({ routing }: Source, { index, isLast, reactionTo }: ExportedProvider): string {
  const entries = routing.providers[index]!.decisions.flatMap(({ condition, rule: usualRule, exceptions }) => {
    const named = (rule: number | null, status?: number) => {
      if (rule !== null) return `rules[${rule}]`;
      return isLast || reactionTo(condition, status).failsOver ? 'failover' : 'fail';
    };
    const usual = named(usualRule);
    const apart = exceptions.map(({ status_code, rule }) => `'${condition}:${status_code}': ${named(rule, status_code)}`);
    return usual === 'failover' ? apart : [`${condition}: ${usual}`, ...apart];
  });
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

/** A sign of a condition in generated code. */
const signLiteral = ({ condition, from, to, says }: (typeof orderedSigns)[number]) =>
  `  [${[literal(condition), from, to, ...(says === null ? [] : [says])].join(', ')}],\n`;

const reasonLiteral = ([reason, condition]: readonly [string, Condition]) => `${literal(reason)}: ${literal(condition)}`;

/** The shared part of generated code: classifying failures and applying rules. */
const guardCode = `/** How failures are recognized: their statuses, from and to, and what their text then says. The first one counts. */
const signs = [
${orderedSigns.map(signLiteral).join('')}];

/** Finish reasons of answers that a provider withheld. */
const withheld = { ${[...withheldReasons].map(reasonLiteral).join(', ')} };

/** The condition of a failure, from its status and the text of its body. */
function conditionOf({ status, words = '' }) {
  if (status === undefined) return ${literal(ofNoAnswer.broken)};
  return signs.find(([, from, to, says]) => status >= from && status <= to && (!says || says.test(words)))[0];
}

/** Throws if an answer is empty or was withheld. */
function requireAnswer(isEmpty, finishReason) {
  const condition = withheld[String(finishReason).toLowerCase()] ?? (isEmpty ? ${literal(ofNoAnswer.unusable)} : undefined);
  if (condition) throw Object.assign(new Error(\`The answer is unusable: \${condition}.\`), { condition });
}

/** The wait before the next retry in milliseconds, after \`count\` retries. */
function waitOf(rule, count, retryAfter) {
  const grown = rule.backoff === 'constant' ? rule.waitMs : rule.waitMs * 2 ** count;
  const own = Math.min(grown, rule.maxWaitMs) * (rule.backoff === 'constant' ? 1 : 0.5 + Math.random() / 2);
  return Math.min(Math.max(own, rule.respectRetryAfter ? retryAfter : 0), rule.maxWaitMs);
}

/** A Retry-After value (seconds or a date) in milliseconds; 0 without one. */
function retryAfterMs(value) {
  const text = String(value ?? '').trim();
  if (${retryAfterForms.seconds}.test(text)) return Number(text) * 1000;
  const ms = ${retryAfterForms.date}.test(text) ? Date.parse(text) - Date.now() : 0;
  return ms > 0 ? ms : 0;
}

/**
 * Calls a provider and retries as its rules say. A thrown error has \`endsChain\`, which is true if no other provider may
 * be tried, and \`to\` with the names of those that are tried next, if not in the order of the chain.
 */
async function guarded(provider, call, outer) {
  const used = new Map();
  for (;;) {
    const deadline = AbortSignal.timeout(provider.timeoutMs);
    try {
      return await call(outer ? AbortSignal.any([deadline, outer]) : deadline);
    } catch (error) {
      if (outer?.aborted) throw Object.assign(error, { endsChain: true });
      const failure = failureOf(error);
      const condition = failure.condition ?? (deadline.aborted ? ${literal(ofNoAnswer.late)} : conditionOf(failure));
      const rule = provider.decisions[\`\${condition}:\${failure.status}\`] ?? provider.decisions[condition] ?? failover;
      const count = used.get(rule) ?? 0;
      if (rule.action === 'retry' && count < rule.retries) {
        used.set(rule, count + 1);
        await new Promise((resolve) => setTimeout(resolve, waitOf(rule, count, retryAfterMs(failure.retryAfter))));
        continue;
      }
      throw Object.assign(error, { endsChain: rule.action === 'fail' || rule.then === 'fail', to: rule.to });
    }
  }
}
`;
