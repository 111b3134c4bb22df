import { createFallbackClient, type FallbackClient } from '../../src/fallback/client/client.ts';
import type { Decision, Routing } from '../../src/fallback/model/routing.ts';
import type { PromptResult, TestResult } from '../../src/fallback/model/test.ts';
import { ClientError } from '../../src/kit/client-errors.ts';
import { createFallback } from '../../src/server.ts';
import { type FakeProvider, startProvider } from './providers.ts';

/**
 * `npm run demo:fallback`: creates a chain of three fake providers on loopback and shows its routing table, a simulation, a
 * drill with the first provider down, and exports. It starts its own service in memory, or uses the fallback service at SERVICE_URL
 * (with SERVICE_API_KEY), which must run with `--allow-live` and `SERVICE_LIVE_ALLOW=127.0.0.1`.
 */

const names = ['gpt', 'claude', 'mistral'] as const;
const models = { gpt: 'openai/gpt-4o', claude: 'anthropic/claude-sonnet-4-5', mistral: 'mistral/mistral-large-latest' };

/** Retries rate limits and fails over on server errors and timeouts; defaults decide the rest. */
const rules = [
  { condition: 'rate_limit', action: 'retry', max_retries: 2, wait_ms: 200 },
  { condition: 'server_error', action: 'failover' },
  { condition: 'timeout', action: 'failover' },
] as const;

type Providers = Record<(typeof names)[number], FakeProvider>;

const title = (text: string) => console.log(`\n${text}\n`);

async function createChain(client: FallbackClient, providers: Providers): Promise<string> {
  const chain = await client.createChain({
    body: {
      name: 'demo-chain',
      providers: names.map((name) => ({ name, model_id: models[name], api_base: providers[name].base })),
      fallback_rules: [...rules],
    },
  });
  return chain.id;
}

/** The decision about a failure; in parentheses if it is a default. */
function cellOf({ action, max_retries, next_provider, source }: Decision): string {
  const end = next_provider ?? 'the prompt fails';
  const text = action === 'retry' ? `retry ${max_retries}, ${end}` : end;
  return source === 'default' ? `(${text})` : text;
}

function showRouting({ order, providers, worst_case }: Routing): void {
  title(`Routing: ${order.join(', then ')}. What happens when a provider fails (defaults in parentheses):`);
  const line = (cells: readonly string[]) =>
    console.log(
      cells
        .map((cell) => cell.padEnd(22))
        .join('')
        .trimEnd(),
    );
  line(['', ...order.map((name) => `${name} fails`)]);
  providers[0]!.decisions.forEach(({ condition }, row) => {
    line([condition, ...providers.map(({ decisions }) => cellOf(decisions[row]!))]);
  });
  console.log(`\nAt worst a prompt takes ${worst_case.attempts} attempts and ${worst_case.latency_ms / 1000} s.`);
}

function showVerdict({ verdict, success_count, prompt_count, fallback_count, retry_count, checks }: TestResult): void {
  console.log(`verdict ${verdict}: ${success_count} of ${prompt_count} served, ${fallback_count} by a backup, ${retry_count} retries`);
  for (const { passed, detail } of checks) console.log(`  ${passed ? 'holds' : 'fails'}  ${detail}`);
}

function showPrompt({ index, attempts, served_by }: PromptResult): void {
  const steps = attempts.flatMap(({ provider, condition, injected }) =>
    condition === null ? [] : [`${provider} ${condition}${injected ? ' (injected)' : ''}`],
  );
  console.log(`prompt ${index}: ${[...steps, served_by === null ? 'nobody answered' : `${served_by} answered`].join(', ')}`);
}

async function play(client: FallbackClient, id: string, providers: Providers): Promise<void> {
  const params = { id };
  showRouting(await client.getRouting({ params }));

  title('A simulation of every rule, in virtual time, without calls:');
  showVerdict(await client.runTest({ params, body: { prompt_count: 20, seed: 1 } }));

  title('A drill: gpt is down, the others are called:');
  const drill = await client.runTest({ params, body: { mode: 'drill', preset: 'primary_down', prompt_count: 3 } });
  for (const prompt of drill.results) showPrompt(prompt);
  showVerdict(drill);
  console.log(`prompts that reached them: ${names.map((name) => `${name} ${providers[name].asked()}`).join(', ')}`);

  for (const format of ['portkey', 'litellm'] as const) {
    const { filename, lossless, warnings } = await client.exportChain({ params, query: { format } });
    title(`Export to ${format}: ${filename}, ${lossless ? 'nothing is lost' : 'with what it cannot say:'}`);
    for (const { detail } of warnings) console.log(`  ${detail}`);
  }
}

/** The address in SERVICE_URL, unless another service answers there: `service-cli` takes the handoff service's from the same variable. */
async function givenAddress({ SERVICE_URL: address }: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (!address) return undefined;
  const asked = { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(5000) };
  // If nothing answers, the client says so.
  const name = await fetch(new URL('/', address), asked).then(
    async (answer) => ((await answer.json().catch(() => ({}))) as { name?: string }).name ?? 'another server',
    () => undefined,
  );
  if (name === undefined || name.includes('fallback')) return address;
  console.log(`SERVICE_URL is the address of ${name}; the demo starts its own fallback service.`);
  return undefined;
}

async function main(environment: NodeJS.ProcessEnv): Promise<void> {
  const given = await givenAddress(environment);
  const apiKey = given && environment.SERVICE_API_KEY;
  await using gpt = await startProvider();
  await using claude = await startProvider();
  await using mistral = await startProvider();
  await using own = given ? undefined : await createFallback({ allowLive: true, liveAllow: ['127.0.0.1'] });
  const client = createFallbackClient({ baseUrl: own?.url ?? given!, apiKey: apiKey || undefined });
  const providers = { gpt, claude, mistral };
  const id = await createChain(client, providers);
  try {
    await play(client, id, providers);
  } finally {
    await client.deleteChain({ params: { id } });
  }
}

try {
  await main(process.env);
} catch (error) {
  if (!(error instanceof ClientError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
