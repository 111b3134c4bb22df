import { portkeyKinds } from '../../kind-lists.ts';
import type { KindNames } from '../kind-names.ts';

/** Portkey's names of kinds of providers. */
export const kindNames: KindNames = {
  known: portkeyKinds,
  aliases: {
    mistral: 'mistral-ai',
    gemini: 'google',
    together: 'together-ai',
    fireworks: 'fireworks-ai',
    xai: 'x-ai',
    perplexity: 'perplexity-ai',
    azure: 'azure-openai',
  },
};

/** Kinds to whose addresses Portkey appends a version, and `/chat/completions` (version 1.15.2). */
const versioned: Readonly<Record<string, string>> = {
  '302ai': '/v1',
  deepseek: '/v1',
  hyperbolic: '/v1',
  lepton: '/api/v1',
  lingyi: '/v1',
  moonshot: '/v1',
  'novita-ai': '/v1',
  ollama: '/v1',
  openrouter: '/v1',
  sambanova: '/v1',
  'together-ai': '/v1',
};

/**
 * Kinds that Portkey calls by protocols of their own, or not at all for a chat, so that OpenAI's is called only as `openai`
 * (version 1.15.2).
 */
const foreign: ReadonlySet<string> = new Set([
  ...['ai21', 'bytez', 'cohere', 'google', 'huggingface', 'palm', 'predibase', 'reka-ai', 'workers-ai'],
  ...['cortex', 'portkey', 'replicate', 'triton'],
  ...['jina', 'meshy', 'milvus', 'nomic', 'qdrant', 'recraft-ai', 'segmind', 'stability-ai', 'tripo3d', 'voyage'],
]);

/**
 * How Portkey reaches OpenAI's or Anthropic's protocol at an address with its version path: the provider and the `custom_host` of
 * a target. A kind that Portkey would call at another path is `openai` there.
 */
export function hostOf(kind: string, base: string): { provider: string; custom_host: string } {
  const plain = base.replace(/\/+$/, '');
  const version = versioned[kind];
  if (foreign.has(kind) || (version !== undefined && !plain.endsWith(version))) return { provider: 'openai', custom_host: plain };
  return { provider: kind, custom_host: version === undefined ? plain : plain.slice(0, -version.length) };
}

/** The address with its version path that Portkey calls for a `custom_host`. */
export const addressAt = (kind: string, customHost: string): string => `${customHost.replace(/\/+$/, '')}${versioned[kind] ?? ''}`;

/** The model of a provider that is called with the model of each request. */
export const asRequested = 'as-requested';

/** Portkey's names of parameters. */
export const paramNamesInPortkey: Readonly<Record<string, string>> = {
  api_version: 'api_version',
  aws_region_name: 'aws_region',
  aws_access_key_id: 'aws_access_key_id',
  aws_secret_access_key: 'aws_secret_access_key',
  aws_session_token: 'aws_session_token',
  vertex_project: 'vertex_project_id',
  vertex_location: 'vertex_region',
  organization: 'openai_organization',
  virtual_key: 'virtual_key',
};
