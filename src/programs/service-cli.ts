import { main } from '../handoff/cli/main.ts';

// `service-cli`. Loaded only by `serve`: the variables of both services, about which it warns.
export const run = (): Promise<void> => main(async (environment) => (await import('./variables.ts')).unknownVariables(environment));
