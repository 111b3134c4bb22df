import type { ChainRequest } from '../../../model/chain.ts';
import { filled, withoutNulls } from '../../chain.ts';
import type { ExportInput } from '../target.ts';

/** The request that creates the chain: all fields with a value, including defaults. */
export function exportBaton({ chain }: Pick<ExportInput, 'chain'>): ChainRequest {
  const { name, description, providers, fallback_rules, cooldown, metadata } = chain;
  return withoutNulls({
    name,
    description,
    providers: providers.map((provider) =>
      withoutNulls({
        ...provider,
        cooldown: provider.cooldown && withoutNulls(provider.cooldown),
        params: filled(provider.params),
        metadata: filled(provider.metadata),
      }),
    ),
    fallback_rules: fallback_rules.map(withoutNulls),
    cooldown: cooldown && withoutNulls(cooldown),
    metadata: filled(metadata),
  }) as ChainRequest;
}
