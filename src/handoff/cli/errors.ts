import type { ApiError, NetworkError } from '../../kit/client-errors.ts';
import type { Context } from './context.ts';
import { CliError, type ExitCode } from './terminal.ts';

/** The message for the user and the exit code of an error. Rethrows an error that is a bug. */
export async function explain(error: unknown, config: Context['config']): Promise<{ message: string; exitCode: ExitCode }> {
  if (error instanceof CliError) return { message: error.message, exitCode: error.exitCode };
  const { ApiError, NetworkError, TimeoutError } = await import('../../kit/client-errors.ts');
  if (error instanceof ApiError) return { message: await refusal(error, config), exitCode: 1 };
  if (error instanceof NetworkError || error instanceof TimeoutError) {
    return { message: await unreachable(error as NetworkError, config), exitCode: 3 };
  }
  const { code, path } = error as NodeJS.ErrnoException;
  if (path !== undefined && code !== undefined) return { message: `${path} can't be read (${code}).`, exitCode: 2 };
  throw error;
}

async function refusal({ message, field, errors, status_code, code, body }: ApiError, config: Context['config']): Promise<string> {
  const lines = [field === null || message.includes(field) ? message : `${field}: ${message}`];
  for (const fault of errors.slice(1)) lines.push(`${fault.field}: ${fault.detail}`);
  if (code === undefined) lines.push(`The server at ${(await config()).serverUrl} may not be a handoff service.`);
  if (status_code === 401) {
    const { apiKey, file, sources } = await config();
    const used = apiKey === undefined ? 'No API key was given' : `The API key came from ${sources.apiKey}`;
    lines.push(`${used}; set one with --api-key, SERVICE_API_KEY or api_key in ${file}.`);
  }
  const claimant = body.claimed_by as { agent_id?: string; claimed_at?: string } | null | undefined;
  if (claimant?.agent_id !== undefined) lines.push(`Held by ${claimant.agent_id} since ${claimant.claimed_at}.`);
  return lines.join('\n');
}

async function unreachable(error: NetworkError, config: Context['config']): Promise<string> {
  const { serverUrl, file, sources } = await config();
  const from = sources.serverUrl === 'the default' ? 'the default address' : `from ${sources.serverUrl}`;
  return [
    `No handoff service answers at ${serverUrl} (${from}): ${error.message}`,
    `Start one with "service-cli serve", or set another address with --server-url, SERVICE_URL or server_url in ${file}.`,
  ].join('\n');
}
