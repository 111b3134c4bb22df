import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** The answer of LiteLLM to a prompt: the text, or the error; `refused` at its beginning means that the file was not loaded. */
interface LitellmAnswer {
  answer: string | null;
  error: string | null;
}

/** LiteLLM in the Python environment that CI makes. */
interface Litellm {
  /** The names of its providers. */
  providers: readonly string[];
  /** Loads a configuration afresh, and sends a prompt to a model group. */
  ask(config: string, group: string): Promise<LitellmAnswer>;
  stop(): void;
}

/**
 * Starts LiteLLM: its proxy, or its router with all calls of providers redirected to `internet`.
 * @throws Error if the Python environment is missing
 */
export async function startLitellm(internet?: { origin: string; keys: readonly string[] }): Promise<Litellm> {
  const path = (name: string) => new URL(name, import.meta.url).pathname;
  const keys = Object.fromEntries((internet?.keys ?? ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'LLAMA_API_KEY']).map((name) => [name, name]));
  const script = internet === undefined ? 'litellm_runner.py' : 'litellm_router.py';
  const child = spawn(path('.venv/bin/python'), [path(script)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...keys, ...(internet === undefined ? {} : { INTERNET: internet.origin }) },
  });
  let printed = '';
  child.stderr.on('data', (chunk: Buffer) => {
    printed = (printed + chunk).slice(-4000);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`LiteLLM ended: ${printed}`);
    return JSON.parse(value) as unknown;
  };
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  const { providers } = (await next()) as { providers: string[] };
  let last: Promise<unknown> = Promise.resolve();
  return {
    providers,
    ask(config, group) {
      const answered = last.then(() => {
        child.stdin.write(`${JSON.stringify({ config, group })}\n`);
        return next() as Promise<LitellmAnswer>;
      });
      last = answered.catch(() => undefined);
      return answered;
    },
    stop: () => void child.kill(),
  };
}
