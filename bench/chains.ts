/** The create request of a chain with ten providers and twenty rules. */
export const chainOf = (index: number) => ({
  name: `chain ${index}`,
  providers: Array.from({ length: 10 }, (_, place) => ({ name: `provider ${place}`, model_id: `openai/model-${place}` })),
  fallback_rules: Array.from({ length: 20 }, (_, place) => ({
    condition: place % 2 === 0 ? ('rate_limit' as const) : ('timeout' as const),
    action: place % 2 === 0 ? ('retry' as const) : ('failover' as const),
    providers: [`provider ${Math.floor(place / 2)}`],
  })),
});
