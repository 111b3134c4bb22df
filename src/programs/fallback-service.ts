import { createProgram } from '../fallback/cli/main.ts';

// `fallback-service`.
export const run = async (): Promise<void> => {
  await createProgram(async (environment) => (await import('./variables.ts')).unknownVariables(environment)).parseAsync();
};
