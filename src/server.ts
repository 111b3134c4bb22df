import { createRequire } from 'node:module';
import type packageFile from '../package.json';
import type { EmbeddedDependencies, EmbeddedHandoff, EmbeddedService } from './embedded.ts';
import type { Dependencies as EmbeddedFallbackDependencies } from './fallback/main.ts';
import type { Settings as FallbackSettings } from './fallback/settings.ts';
import type { Settings as HandoffSettings } from './handoff/settings.ts';

// The package's export `baton/server`: services inside another program, such as a test suite.

export type { EmbeddedDependencies, EmbeddedFallbackDependencies, EmbeddedHandoff, EmbeddedService, FallbackSettings, HandoffSettings };

/**
 * Starts a handoff packet service inside this program: `const { url, adminKey } = await createHandoff();`.
 * The default settings are meant for tests: in memory, on a free port of 127.0.0.1, without a log and request limits. It
 * does not read the environment.
 * @param settings by their names in code: `databaseUrl` is `SERVICE_DATABASE_URL`
 * @param dependencies that a test can replace, such as the clock, randomness and the log
 * @throws when it can't listen, the database can't be opened, or Node is older than `engines` of package.json says
 */
export async function createHandoff(
  settings: Partial<HandoffSettings> = {},
  dependencies: EmbeddedDependencies = {},
): Promise<EmbeddedHandoff> {
  return (await embedded()).createHandoff(settings, dependencies);
}

/**
 * Starts a fallback chain service inside this program: `const { url } = await createFallback();`.
 * The default settings are meant for tests: in memory, on a free port of 127.0.0.1, without a log and keys. It does not
 * read the environment.
 * @param settings by their names in code: `rateLimit` is `--rate-limit`
 * @param dependencies that a test can replace
 * @throws when it can't listen, the storage can't be opened, or Node is older than `engines` of package.json says
 */
export async function createFallback(
  settings: Partial<FallbackSettings> = {},
  dependencies: EmbeddedFallbackDependencies = {},
): Promise<EmbeddedService> {
  return (await embedded()).createFallback(settings, dependencies);
}

/** The services' code, which older versions of Node can't load. */
function embedded(): Promise<typeof import('./embedded.ts')> {
  // Node 20 does not take the attribute of an import of JSON in all of its versions.
  const { engines } = createRequire(import.meta.url)('../package.json') as typeof packageFile;
  const needed = engines.node.replace('>=', '');
  const { node } = process.versions;
  if (node.localeCompare(needed, 'en', { numeric: true }) < 0)
    throw new Error(`baton/server needs Node ${needed} or newer; this is Node ${node}. The client of baton and baton-client need Node 20.`);
  return import('./embedded.ts');
}
