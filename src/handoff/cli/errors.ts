import { ApiError, NetworkError, TimeoutError } from '../../kit/client-errors.ts';
import { Connection } from '../../kit/connection.ts';
import { readJson } from '../../kit/json.ts';
import type { Context } from './context.ts';
import { nodeTransport } from './node-transport.ts';
import { CliError, type ExitCode } from './terminal.ts';

/** The message for the user and the exit code of any error. The stack is added only with --verbose. */
export async function explain(error: unknown, { config, verbose }: Context): Promise<{ message: string; exitCode: ExitCode }> {
  const stack = verbose ? `\n${(((error as Error).cause ?? error) as Error).stack}` : '';
  try {
    if (error instanceof CliError) return { message: error.message + (error.cause === undefined ? '' : stack), exitCode: error.exitCode };
    if (error instanceof ApiError) return { message: await refusal(error, config), exitCode: 1 };
    if (error instanceof NetworkError || error instanceof TimeoutError) return { message: await unreachable(error, config), exitCode: 3 };
  } catch (another) {
    // The configuration that the message would name can't be read; its error is reported instead.
    if (another instanceof CliError) return { message: another.message, exitCode: another.exitCode };
  }
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (path !== undefined && code !== undefined) return { message: `${path} can't be read (${code}).`, exitCode: 2 };
  return { message: `Unexpected error: ${message}${stack || '\nAdd --verbose for details.'}`, exitCode: 1 };
}

async function refusal({ message, field, errors, status_code, code, body }: ApiError, config: Context['config']): Promise<string> {
  const lines = [named(field, message)];
  for (const fault of errors.slice(1)) lines.push(`${fault.field}: ${fault.detail}`);
  // Every handoff service has this path, and all its errors have a code, so another server answered.
  if (code === undefined || (status_code === 404 && message.startsWith('There is nothing at this path'))) {
    const { serverUrl } = await config();
    lines.push(`The server at ${serverUrl} ${await serviceAt(serverUrl)}; set another address with --server-url or SERVICE_URL.`);
  }
  if (status_code === 401) {
    const { apiKey, file, sources } = await config();
    const used = apiKey === undefined ? 'No API key was given' : `The API key came from ${sources.apiKey}`;
    lines.push(`${used}; set one with --api-key, SERVICE_API_KEY or api_key in ${file}.`);
  }
  lines.push(...askedFor(body));
  const claimant = body.claimed_by as { agent_id?: string; claimed_at?: string } | null | undefined;
  if (claimant?.agent_id !== undefined) lines.push(`Held by ${claimant.agent_id} since ${claimant.claimed_at}.`);
  return lines.join('\n');
}

/** The description of the contract that refused a packet, as lines. */
export function askedFor({ contract }: ApiError['body']): string[] {
  const { agent_id, description } = (contract ?? {}) as { agent_id?: string; description?: string | null };
  return description ? [`${agent_id} asks for: ${description}`] : [];
}

/** What the server at the address is, by its answer to `GET /`: the end of a sentence. */
async function serviceAt(serverUrl: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(3000);
    const { text } = await new Connection({ baseUrl: new URL(serverUrl).origin, transport: nodeTransport, retries: 0 }).send({
      method: 'GET',
      path: '/',
      repeatable: true,
      signal,
    });
    const { name } = readJson(text) as { name?: unknown };
    if (typeof name === 'string') return `is "${name}", not this part of a handoff service`;
  } catch {
    // It says nothing that this program understands.
  }
  return 'may not be a handoff service';
}

/** The sentence with the name of its field, unless it contains that already. */
export function named(field: string | null, detail: string): string {
  return field === null || detail.includes(field) ? detail : `${field}: ${detail}`;
}

async function unreachable(error: Error, config: Context['config']): Promise<string> {
  const { serverUrl, file, sources } = await config();
  const from = sources.serverUrl === 'the default' ? 'the default address' : `from ${sources.serverUrl}`;
  return [
    `No handoff service answers at ${serverUrl} (${from}): ${error.message}`,
    `Start one with "service-cli serve", or set another address with --server-url, SERVICE_URL or server_url in ${file}.`,
  ].join('\n');
}
