import type { ChainDefinition, ChainRequest } from '../../model/chain.ts';
import { withoutNulls } from '../chain.ts';
import { type Exporter, jsonText, slug, yamlText } from './target.ts';

/** The chain as the body of a create request, as JSON. */
export const json: Exporter = ({ chain }) => {
  const config = requestOf(chain);
  return { filename: `${slug(chain.name)}.json`, content_type: 'application/json', config, content: jsonText(config) };
};

/** The chain as the body of a create request, as YAML. */
export const yaml: Exporter = ({ chain }) => {
  const config = requestOf(chain);
  return { filename: `${slug(chain.name)}.yaml`, content_type: 'application/yaml', config, content: yamlText(config) };
};

/** The request that creates the chain: all fields with a value, including defaults. */
export function requestOf(chain: ChainDefinition): ChainRequest {
  const { name, description, providers, fallback_rules, metadata } = chain;
  return withoutNulls({
    name,
    description,
    providers: providers.map((provider) =>
      withoutNulls({ ...provider, params: orNothing(provider.params), metadata: orNothing(provider.metadata) }),
    ),
    fallback_rules: fallback_rules.map(withoutNulls),
    metadata: orNothing(metadata),
  }) as ChainRequest;
}

const orNothing = (metadata: Record<string, unknown>) => (Object.keys(metadata).length === 0 ? null : metadata);
