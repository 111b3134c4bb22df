import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startProgram } from '../support/program.ts';

const program = `
import { registerHooks } from 'node:module';
const loaded = new Set();
const report = (url) => {
  const [, name] = /src.handoff.(mcp|a2a).http.ts$/.exec(url) ?? [];
  if (name !== undefined) console.log(process.listening ? 'loaded ' + name : name + ' before the start');
};
registerHooks({ load: (url, context, next) => { report(url); return next(url, context); } });
const { createHandoff } = await import(process.argv[1] + '/src/handoff/main.ts');
const { readHandoffSettings } = await import(process.argv[1] + '/src/handoff/settings.ts');
const handoff = await createHandoff(readHandoffSettings({ environment: { SERVICE_DATABASE_URL: 'sqlite::memory:', SERVICE_PORT: '0', SERVICE_HOST: '127.0.0.1' } }));
handoff.app.server.on('listening', () => { process.listening = true; });
await handoff.start();
`;

test('The endpoints of MCP and A2A are loaded after the start, before anybody calls them', async (t) => {
  const root = new URL('../..', import.meta.url).pathname;
  const started = startProgram([process.execPath, '--input-type=module', '-e', program, root], { t, env: { PATH: process.env.PATH } });
  await started.printed(/^loaded a2a$/);
  assert.deepEqual(started.lines.filter((line) => /mcp|a2a/.test(line)).sort(), ['loaded a2a', 'loaded mcp']);
});
