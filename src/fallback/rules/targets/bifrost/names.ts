import type { KindNames } from '../kind-names.ts';

/** Bifrost's names of kinds of providers. https://docs.getbifrost.ai/providers/supported-providers/overview */
export const kindNames: KindNames = {
  known: new Set('openai anthropic mistral groq gemini openrouter xai cohere perplexity cerebras azure bedrock vertex'.split(' ')),
  aliases: { vertex_ai: 'vertex' },
};
