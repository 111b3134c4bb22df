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
