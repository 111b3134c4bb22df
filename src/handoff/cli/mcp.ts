import packageJson from '../../../package.json' with { type: 'json' };
import type { Context } from './context.ts';
import type { Options } from './rows.ts';

/** `mcp`: serves the Model Context Protocol over standard input and output, with the tools of the service. */
export async function mcp(context: Context, { agent }: Options): Promise<void> {
  const client = await context.client();
  // Loaded only here: other commands need neither the protocol nor the schemas.
  const { serveMcpOverStdio } = await import('../mcp/stdio.ts');
  serveMcpOverStdio({
    client,
    version: packageJson.version,
    agentId: agent === undefined ? undefined : String(agent),
    onError: (error) => context.err.line(error instanceof Error ? error.message : String(error)),
  });
}
