import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import type { Played, ScenePlayer } from './scenes.ts';

/** LiteLLM's router in a process of its own, which plays scenes without a network. */
interface SceneRouter extends ScenePlayer {
  stop(): void;
}

/** Starts it. @throws Error if the Python environment is missing */
export async function startSceneRouter(): Promise<SceneRouter> {
  const path = (name: string) => new URL(name, import.meta.url).pathname;
  const child = spawn(path('.venv/bin/python'), [path('litellm_scenes.py')], { stdio: ['pipe', 'pipe', 'pipe'] });
  let printed = '';
  child.stderr.on('data', (chunk: Buffer) => {
    printed = (printed + chunk).slice(-4000);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  return {
    async play(file) {
      child.stdin.write(`${JSON.stringify(file)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`LiteLLM ended: ${printed}`);
      return JSON.parse(value) as Played[];
    },
    stop: () => void child.kill(),
  };
}
