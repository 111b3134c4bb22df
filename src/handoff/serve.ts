import { runService } from '../kit/serve.ts';
import { createHandoff } from './main.ts';
import { readHandoffSettings } from './settings.ts';

/** What the command line may say. */
export interface ServeFlags {
  host?: string;
  port?: string;
  config?: string;
}

/** Runs the handoff service until it is told to stop. An admin key that was made is shown behind the address. */
export async function serveHandoff({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv): Promise<void> {
  await runService('handoff', async () => {
    const service = await createHandoff(readHandoffSettings({ flags, environment, file: config ?? environment.SERVICE_CONFIG }));
    const { adminKey, logger, start, stop } = service;
    return { logger, start, stop, notices: adminKey === undefined ? [] : [`admin key (shown only now): ${adminKey}`] };
  });
}
