import { modelName } from '../../kinds.ts';
import { listed } from '../../wording.ts';
import {
  type ExportedProvider,
  type Exporter,
  type Source,
  warnOfEnds,
  warnOfInterrupted,
  warnOfOwnOrders,
  warnOfUnsupportedFields,
} from '../target.ts';

/** The most backups that OpenRouter accepts. */
const maxBackups = 3;

/**
 * The body of an OpenRouter chat request: the primary in `model`, its backups in `models`. OpenRouter calls all models
 * with its own keys and fails over on any error.
 * https://openrouter.ai/docs/features/model-routing
 */
export const exportOpenrouter: Exporter = (source) => {
  const { providers, warnings } = source;
  const [first, ...backups] = providers.map(modelSlug);
  if (backups.length > maxBackups) {
    const left = providers.slice(maxBackups + 1).map(({ provider }) => provider.name);
    const sentence = `OpenRouter tries at most ${maxBackups + 1} models: ${listed(left)} ${left.length > 1 ? 'are' : 'is'} left out.`;
    warnings.loss('too_long', 'providers', sentence);
  }
  warnOfOwnOrders(source, 'OpenRouter');
  warnOfInterrupted(source, 'OpenRouter');
  warnOfRules(source);
  warnOfUnsupportedFields(source);
  warnings.loss(
    'hosted',
    null,
    "OpenRouter calls the models itself, so the request can't contain the chain's addresses, key variables and timeouts.",
  );
  return {
    model: first,
    ...(backups.length > 0 ? { models: backups.slice(0, maxBackups), provider: { allow_fallbacks: true } } : {}),
    messages: [{ role: 'user', content: '{{prompt}}' }],
  };
};

/** The model's name at OpenRouter, `vendor/model`; an id with a slash is unchanged. */
function modelSlug({ provider, loss }: ExportedProvider): string {
  const { name, model_id, provider: kind } = provider;
  if (model_id.includes('/')) return model_id;
  const named = kind === null ? model_id : `${kind}/${modelName(provider)}`;
  loss('model_slug', 'model_id', `${name}: OpenRouter may not know the model as ${named}; look up its name at openrouter.ai/models.`);
  return named;
}

function warnOfRules(source: Source): void {
  const { decisions } = source.routing.providers[0]!;
  const retried = decisions.filter(({ max_retries }) => max_retries > 0).map(({ condition }) => condition);
  if (retried.length > 0)
    source.warnings.loss('retries', null, `OpenRouter does not try the same model again: the retries on ${listed(retried)} are lost.`);
  warnOfEnds(source, 'OpenRouter tries the next model on any error');
}
