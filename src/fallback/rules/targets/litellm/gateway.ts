import type { RehearsedGateway } from '../gateway.ts';
import { groupName } from './names.ts';
import { redirectFile, withTimeouts } from './own-file.ts';
import { streamReasons } from './streams.ts';

/** LiteLLM's proxy in a rehearsal. */
export const litellmGateway: RehearsedGateway = {
  modelOf: ({ name }) => groupName(name),
  // It refuses to start without a master key, and would fetch prices, and tokenizers for its counts of streams, from the network.
  environmentOf: (given, key) => ({ LITELLM_LOCAL_MODEL_COST_MAP: 'True', HF_HUB_OFFLINE: '1', ...given, LITELLM_MASTER_KEY: key }),
  version: { path: '/health/readiness/details', field: 'litellm_version' },
  memory: {
    note: (option) =>
      `The export for LiteLLM switches cool-downs off (disable_cooldowns), so scenes do not disturb one another; ${option} keeps them.`,
    without(file) {
      if (typeof file !== 'object' || file === null) return file;
      const { router_settings } = file as { router_settings?: object | null };
      return { ...file, router_settings: { ...router_settings, disable_cooldowns: true } };
    },
  },
  withTimeouts,
  ofStreams: streamReasons,
  redirectFile,
};
