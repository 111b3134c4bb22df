import { createHandoff, type Handoff } from '../../src/handoff/main.ts';
import type { Extension } from '../../src/handoff/mcp/server.ts';
import { readHandoffSettings } from '../../src/handoff/settings.ts';

export const apiKey = 'mcp-tests-admin-key-0123456789';

/** Starts a service in memory; resolves with its address. */
export async function startService(mcpExtension?: Extension): Promise<{ handoff: Handoff; address: string }> {
  const environment = {
    SERVICE_DATABASE_URL: 'sqlite::memory:',
    SERVICE_ADMIN_KEY: apiKey,
    SERVICE_HOST: '127.0.0.1',
    SERVICE_PORT: '0',
    // Receivers of events of the tests.
    SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
    SERVICE_RATE_LIMIT_PER_MINUTE: '0',
    SERVICE_HOURLY_QUOTA_FREE: '0',
    SERVICE_HOURLY_QUOTA_PRO: '0',
    SERVICE_HOURLY_QUOTA_BUSINESS: '0',
  };
  const logs = { write: (line: string) => void (/"level":[56]0/.test(line) && process.stderr.write(line)) };
  const handoff = await createHandoff(readHandoffSettings({ environment }), {
    logs,
    ...(mcpExtension === undefined ? {} : { mcpExtension }),
  });
  return { handoff, address: await handoff.start() };
}
