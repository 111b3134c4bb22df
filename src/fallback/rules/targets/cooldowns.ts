import type { Draft } from './section.ts';

/** The providers and the cool-down of a chain: one that all providers have is that of the chain. */
export function withSharedCooldown<P extends Draft>(providers: readonly P[]): { providers: readonly Draft[]; cooldown?: unknown } {
  const [first, ...others] = providers.map(({ cooldown }) => JSON.stringify(cooldown));
  if (first === undefined || others.some((other) => other !== first)) return { providers };
  return { providers: providers.map(({ cooldown: _, ...provider }) => provider), cooldown: providers[0]!.cooldown };
}
