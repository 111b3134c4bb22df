import type { AgentCard } from '@a2a-js/sdk';

import type { Contract } from '../model/contract.ts';

/** What an agent card says of the service. */
export interface Address {
  /** The origin by which clients reach the service. */
  readonly origin: string;
  readonly version: string;
  /** The agents that the public card names. */
  readonly agents: readonly string[];
  /** The identity provider whose tokens are taken; undefined: none. */
  readonly issuer: string | undefined;
}

/** An agent as a card shows it: its id, and what its contract says. */
export interface SkilledAgent extends Partial<Pick<Contract, 'description' | 'examples'>> {
  readonly id: string;
}

/** The only version of A2A that the service speaks. */
export const protocolVersion = '1.0';

const modes = ['text/plain', 'application/json'];

/** The scheme of access tokens of an OpenID Connect provider. */
const openIdConnect = (issuer: string): AgentCard['securitySchemes'][string] => ({
  scheme: {
    $case: 'openIdConnectSecurityScheme',
    value: { description: 'An access token.', openIdConnectUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration` },
  },
});

/** The agent card, with a skill for each agent; one skill, `handoff`, if there is none. */
export function cardOf({ origin, version, agents, issuer }: Address, further: readonly SkilledAgent[] = []): AgentCard {
  const skilled = new Map([...agents.map((id) => ({ id })), ...further].map((agent: SkilledAgent) => [agent.id, agent]));
  const skill = { tags: ['handoff'], examples: [], inputModes: modes, outputModes: modes, securityRequirements: [] };
  return {
    name: 'Baton',
    description:
      'Hands work to an agent of the service: a message becomes a packet, and the task ends when an agent has completed it. Questions to a person are input-required.',
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({
      url: `${origin}/a2a`,
      protocolBinding,
      tenant: '',
      protocolVersion,
    })),
    provider: undefined,
    version,
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: [] },
    securitySchemes: {
      apiKey: { scheme: { $case: 'apiKeySecurityScheme', value: { description: 'An API key.', location: 'header', name: 'X-API-Key' } } },
      ...(issuer === undefined ? {} : { openIdConnect: openIdConnect(issuer) }),
    },
    securityRequirements: [
      { schemes: { apiKey: { list: [] } } },
      ...(issuer === undefined ? [] : [{ schemes: { openIdConnect: { list: ['baton:read', 'baton:work'] } } }]),
    ],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills:
      skilled.size === 0
        ? [{ id: 'handoff', name: 'Hand over', description: 'Hands a message to the agent that `metadata.target_agent` names.', ...skill }]
        : [...skilled.values()].map(({ id, description, examples = [] }) => ({
            ...skill,
            ...{ id, name: id, description: description ?? `Hands a message to the agent ${id}.` },
            examples: examples.map((example) => JSON.stringify(example)),
          })),
    signatures: [],
  };
}
