// A gateway for tests of `rehearse`: reads a configuration of LiteLLM's form, retries statuses that may pass, and leaves out a model after its
// first failure with `allowed_fails: 0`, its only cool-down. Usage: CONFIG PORT [FLAW]
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

import { type Flaw, serveGateway } from './gateway.ts';

interface Config {
  model_list: { model_name: string; litellm_params: { model: string; api_base: string; api_key: string } }[];
  router_settings: { num_retries: number; allowed_fails?: number; cooldown_time?: number; disable_cooldowns?: boolean };
}

const [config = '', port = '0', flaw] = process.argv.slice(2);
if (flaw === 'ends') {
  console.error('the gateway has no licence');
  process.exit(7);
}
const { model_list, router_settings } = parse(readFileSync(config, 'utf8')) as Config;
const retries = new Map([429, 500, 502, 503, null].map((code) => [code, router_settings.num_retries]));
const { allowed_fails, cooldown_time = 5, disable_cooldowns } = router_settings;
const cooldown = allowed_fails === 0 && disable_cooldowns !== true ? { cooldownMs: cooldown_time * 1000 } : {};
const upstreams = model_list.map(({ litellm_params: { model, api_base } }) => {
  const isAnthropic = model.startsWith('anthropic/');
  const protocol = isAnthropic ? ('anthropic' as const) : ('openai' as const);
  return { base: isAnthropic ? `${api_base}/v1` : api_base, retries, protocol, ...cooldown };
});
await serveGateway(upstreams, { port: Number(port), ...(flaw === undefined ? {} : { flaw: flaw as Flaw }) });
