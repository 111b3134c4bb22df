import { conditions, maxAllowedFails, maxCooldownSeconds, maxWindowMs } from '../../../model/chain.ts';
import { countedByDefault, usualStatus } from '../../conditions.ts';
import type { Draft, Section } from '../section.ts';

// Portkey's circuit breaker, as https://portkey.ai/docs/product/ai-gateway/circuit-breaker describes it. The gateway that
// Portkey publishes does not read it.

/** What targets inherit of the circuit breaker around them, with the path of its field. A strategy with conditions has none. */
export function breakerAround(section: Section, strategy: Section): { fields: Draft; paths: Record<string, string> } {
  const [from] = [strategy, section].filter((one) => one.get('cb_config') !== undefined);
  if (from === undefined || strategy.fields.mode === 'conditional') return { fields: {}, paths: {} };
  return { fields: { cb_config: from.get('cb_config') }, paths: { cb_config: from.at('cb_config') } };
}

/** The cool-down of a target, by its circuit breaker, with findings about what a chain has not. */
export function breakerOf(target: Section): { cooldown?: Draft } {
  const breaker = target.optional('cb_config');
  if (breaker === undefined) return {};
  const field = breaker.path;
  const note = (sentence: string, measured?: false) =>
    target.findings.add('cooldowns', field, sentence, { loss: true, ...(measured === false && { measured }) });
  breaker.leaveOutUnknown([
    'failure_threshold',
    'cooldown_interval',
    'failure_status_codes',
    'failure_threshold_percentage',
    'minimum_requests',
  ]);
  if (breaker.get('failure_threshold_percentage') !== undefined)
    breaker.leaveOut('failure_threshold_percentage', 'a cool-down counts failures and has no share of them', 'left_out', {
      loss: true,
      measured: false,
    });
  const threshold = breaker.count('failure_threshold', maxAllowedFails);
  const interval = breaker.count('cooldown_interval', maxCooldownSeconds * 1000) ?? least;
  note("Portkey's service has the circuit breaker; the gateway that Portkey publishes (1.15.2) does not read it, and calls every target.");
  if (threshold === undefined) return {};
  note(
    "Portkey's circuit breaker names no window for its failures, and is bypassed when all targets are left out; the chain counts within a window as long as the cool-down, and the prompt then fails.",
    // Only the documentation of Portkey's service says it.
    false,
  );
  const codes = breaker.get('failure_status_codes');
  const isFailure = (status: number) => (Array.isArray(codes) ? codes.includes(status) : status >= 500);
  const counted = conditions.filter((condition) => countedByDefault.includes(condition) && isFailure(usualStatus(condition) ?? 408));
  if (counted.length === 0) return {};
  const seconds = Math.ceil(Math.max(interval, least) / 1000);
  return { cooldown: { allowed_fails: threshold, window_ms: Math.min(seconds * 1000, maxWindowMs), seconds, conditions: counted } };
}

/** The shortest time, in milliseconds, for which Portkey leaves out a target. */
const least = 30_000;
