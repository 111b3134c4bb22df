import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { litellmFolder } from './extent.ts';
import type { Played, ScenePlayer } from './scenes.ts';

/** The answer of LiteLLM to a prompt: the text, or the error; `refused` at its beginning means that the file was not loaded. */
interface LitellmAnswer {
  answer: string | null;
  error: string | null;
}

/** LiteLLM in its Python environment. */
interface Litellm {
  /** The names of its providers. */
  providers: readonly string[];
  /** Loads a configuration afresh, and sends a prompt to a model group. */
  ask(config: string, group: string): Promise<LitellmAnswer>;
  stop(): void;
}

/** LiteLLM's router in a process of its own, which plays scenes without a network. */
interface SceneRouter extends ScenePlayer {
  stop(): void;
}

/**
 * Starts LiteLLM: its proxy, or its router with all calls of providers redirected to `internet`.
 * @throws Error if the Python environment is missing
 */
export async function startLitellm(internet?: { origin: string; keys: readonly string[] }): Promise<Litellm> {
  const names = internet?.keys ?? ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'LLAMA_API_KEY'];
  const keys = Object.fromEntries(names.map((name) => [name, name]));
  const { providers, answer, stop } =
    internet === undefined
      ? await start('litellm_runner.py', keys)
      : await start('litellm_router.py', { ...keys, INTERNET: internet.origin });
  return { providers, ask: (config, group) => answer({ config, group }) as Promise<LitellmAnswer>, stop };
}

/** Starts LiteLLM's router with fake providers. @throws Error if the Python environment is missing */
export async function startSceneRouter(): Promise<SceneRouter> {
  const { answer, stop } = await start('litellm_scenes.py');
  return { play: (file) => answer(file) as Promise<Played[]>, stop };
}

/** A prompt of a timeline: when it began, and when which hosts were called, in seconds. */
interface TimedPrompt {
  start: number;
  calls: { host: string; at: number; failed: boolean }[];
  answer: string | null;
  error: string | null;
}

/** Prompts at a steady rate, while hosts fail for a while. */
interface TimedFile {
  config: string;
  group: string;
  every: number;
  count: number;
  outages: { host: string; from: number; to: number; status: number; text: string; retry_after: number | null }[];
}

/** Starts LiteLLM's router with fake providers and a clock that tests advance. @throws Error if the Python environment is missing */
export async function startOutageRouter(): Promise<{ play(file: TimedFile): Promise<TimedPrompt[]>; stop(): void }> {
  const { answer, stop } = await start('litellm_outages.py');
  return { play: (file) => answer(file) as Promise<TimedPrompt[]>, stop };
}

/** Starts a Python program that answers each line with one. */
async function start(script: string, environment: Readonly<Record<string, string>> = {}) {
  const path = (name: string) => new URL(name, import.meta.url).pathname;
  const child = spawn(`${litellmFolder}/bin/python`, [path(script)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
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
    /** Answers a request; one after the other. */
    answer: (request: unknown): Promise<unknown> => {
      const answered = last.then(() => {
        child.stdin.write(`${JSON.stringify(request)}\n`);
        return next();
      });
      last = answered.catch(() => undefined);
      return answered;
    },
    stop: () => void child.kill(),
  };
}
