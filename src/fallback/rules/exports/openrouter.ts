import type { Provider } from '../../model/chain.ts';
import { modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { listed } from '../wording.ts';
import { at, type Exporter, endsOf, jsonText, type Source, slug, warnOfEnds, warnOfUnsupportedFields } from './target.ts';

/** The most backups that OpenRouter accepts. */
const maxBackups = 3;

/**
 * The body of an OpenRouter chat request: the primary in `model`, its backups in `models`. OpenRouter calls all models
 * with its own keys and fails over on any error.
 * https://openrouter.ai/docs/features/model-routing
 */
export const openrouter: Exporter = (source, warnings) => {
  const { chain } = source;
  const [first, ...backups] = chain.providers.map((provider, index) => modelSlug(provider, index, warnings));
  if (backups.length > maxBackups) {
    const left = chain.providers.slice(maxBackups + 1).map(({ name }) => name);
    warnings.loss(
      'too_long',
      'providers',
      `OpenRouter tries at most ${maxBackups + 1} models: ${listed(left)} ${left.length > 1 ? 'are' : 'is'} left out.`,
    );
  }
  warnOfRules(source, warnings);
  warnOfUnsupportedFields(source, warnings);
  warnings.loss(
    'hosted',
    null,
    "OpenRouter calls the models itself, so the request can't contain the chain's addresses, key variables and timeouts.",
  );
  const config = {
    model: first,
    ...(backups.length > 0 ? { models: backups.slice(0, maxBackups), provider: { allow_fallbacks: true } } : {}),
    messages: [{ role: 'user', content: '{{prompt}}' }],
  };
  return { filename: `${slug(chain.name)}.openrouter.json`, content_type: 'application/json', config, content: jsonText(config) };
};

/** The model's name at OpenRouter, `vendor/model`; an id with a slash is unchanged. */
function modelSlug(provider: Provider, index: number, warnings: WarningList): string {
  if (provider.model_id.includes('/')) return provider.model_id;
  const named = provider.provider === null ? provider.model_id : `${provider.provider}/${modelName(provider)}`;
  warnings.loss(
    'model_slug',
    at(index, 'model_id'),
    `${provider.name}: OpenRouter may not know the model as ${named}; look up its name at openrouter.ai/models.`,
  );
  return named;
}

function warnOfRules(source: Source, warnings: WarningList): void {
  const { decisions } = source.routing.providers[0]!;
  const retried = decisions.filter(({ max_retries }) => max_retries > 0).map(({ condition }) => condition);
  if (retried.length > 0)
    warnings.loss('retries', null, `OpenRouter does not try the same model again: the retries on ${listed(retried)} are lost.`);
  warnOfEnds(endsOf(source), 'OpenRouter tries the next model on any error', warnings);
}
