import type { ChainDefinition } from '../model/chain.ts';
import type { TemplateName } from '../model/export.ts';
import type { Routing } from '../model/routing.ts';
import { modelName, protocolOf } from './kinds.ts';
import { variableOf } from './params.ts';
import { knownBase, unnamedAddress } from './targets/kind-names.ts';

/** An environment file with the variables of the chain's keys, without values. */
const env = `# The keys of the chain {{ chain.name }}. Fill them in, and keep this file out of version control.
{%- for variable in chain.key_variables %}
{{ variable }}=
{%- endfor %}
`;

/** A runbook for people on call: the order of providers, and what happens on which failure. */
const runbook = `# {{ chain.name }}
{% if chain.description %}
{{ chain.description }}
{% endif %}
Providers are tried in this order. One prompt takes at most {{ chain.routing.worst_case.attempts }} attempt{% if chain.routing.worst_case.attempts != 1 %}s{% endif %} and {{ chain.routing.worst_case.latency_ms | duration }}.

| | Provider | Model | Address | Key | Timeout |
| --- | --- | --- | --- | --- | --- |
{% for provider in chain.providers -%}
| {{ forloop.index }} | {{ provider.name | cell }} | {{ provider.model_id | cell }} | {{ provider.call.url | cell }} | {{ provider.api_key_env | default: "none" }} | {{ provider.timeout_ms | duration }} |
{% endfor %}
{%- for provider in chain.routing.providers %}
## When {{ provider.name }} fails

| Failure | Retries | Then |
| --- | --- | --- |
{% for decision in provider.decisions -%}
| {{ decision.condition }} | {% if decision.max_retries == 0 %}no{% else %}up to {{ decision.max_retries }} time{% if decision.max_retries != 1 %}s{% endif %}{% endif %} | {% if decision.next_provider %}{{ decision.next_provider | cell }} is tried{% else %}the caller gets the error{% endif %} |
{% endfor %}
{%- endfor %}
## Before an outage

1. Run a test of the chain with mode \`drill\`: it calls the backups.
2. Check that every variable in the table is set where the chain runs.
`;

/** A call of each provider, with keys read from their variables when the script runs. */
const curl = `#!/bin/sh
# One call of each provider of the chain {{ chain.name }}. The keys come from the environment.
{% for provider in chain.providers %}
# {{ forloop.index }}. {{ provider.name }}
curl --silent --show-error --max-time {{ provider.timeout_ms | divided_by: 1000.0 | ceil }} {% if provider.call.variable %}"\${{ provider.call.variable }}{{ provider.call.path }}"{% else %}{{ provider.call.url | shell }}{% endif %} \\
  -H 'Content-Type: application/json' \\
{%- if provider.call.protocol == "anthropic" %}
  -H 'anthropic-version: 2023-06-01' \\
{%- if provider.api_key_env %}
  -H "x-api-key: \${{ provider.api_key_env }}" \\
{%- endif %}
{%- elsif provider.api_key_env %}
  -H "Authorization: Bearer \${{ provider.api_key_env }}" \\
{%- endif %}
  -d {{ provider.call.body | json | shell }}
{% endfor %}`;

/** The built-in Liquid templates, with the same variables as any template. */
export const namedTemplates: Readonly<Record<TemplateName, { content_type: string; template: string }>> = {
  env: { content_type: 'text/plain; charset=utf-8', template: env },
  runbook: { content_type: 'text/markdown; charset=utf-8', template: runbook },
  curl: { content_type: 'text/plain; charset=utf-8', template: curl },
};

/**
 * The variable `chain` of templates: all fields of the chain, plus `routing`, `key_variables`, and `call` (url,
 * protocol, model, body) of each provider.
 */
export function templateChain<C extends ChainDefinition>(chain: C, routing: Routing): Record<string, unknown> {
  const variables = chain.providers.flatMap(({ api_key_env }) => api_key_env ?? []);
  const providers = chain.providers.map((provider) => {
    const protocol = protocolOf(provider);
    const model = modelName(provider);
    const tokens = provider.max_tokens ?? (protocol === 'anthropic' ? 64 : null);
    const body = { model, ...(tokens === null ? {} : { max_tokens: tokens }), messages: [{ role: 'user', content: 'Say OK.' }] };
    const variable = variableOf(provider.api_base === null ? provider.params.api_base : undefined) ?? null;
    const path = protocol === 'anthropic' ? '/messages' : '/chat/completions';
    const url = variable === null ? `${knownBase(provider) ?? unnamedAddress}${path}` : `$${variable}${path}`;
    return { ...provider, call: { url, variable, path, protocol, model, body } };
  });
  return { ...chain, providers, routing, key_variables: [...new Set(variables)] };
}
