import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';

import { commands } from '../../../src/handoff/cli/commands.ts';
import { maintenance } from '../../../src/handoff/cli/maintenance.ts';
import { Writer } from '../../../src/handoff/cli/output/writer.ts';
import { runCli } from '../../../src/handoff/cli/program.ts';
import { operations } from '../../../src/handoff/client/operations.ts';
import { routes } from '../../../src/handoff/model/api.ts';
import { packetExample } from '../../../src/handoff/model/examples.ts';
import { Hitl } from '../../../src/handoff/model/hitl.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { listenFor } from '../../support/listen.ts';
import { walksAll } from '../../support/runs.ts';

/** C0, DEL, C1, bidirectional controls, zero-width and tag characters, other line ends, a lone surrogate. */
const hostile = `\u001b]0;owned\u0007\u001b[2J\u0000\u007f\u009b31m\u0085\u202e\u2066\u200f\u061c\ufeff\u2028\u2029\u{e0041}\r\u0008\ud800`;
const unprintable = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** A stream that keeps what is written. */
function recorder(terminal = false): { stream: NodeJS.WriteStream; text(): string } {
  const stream = Object.assign(new PassThrough(), { isTTY: terminal, columns: 80 }) as unknown as NodeJS.WriteStream;
  let text = '';
  stream.write = (chunk: string | Uint8Array) => {
    text += String(chunk);
    return true;
  };
  return { stream, text: () => text };
}

/** Runs the command line in this process. */
async function run(
  args: readonly string[],
  address: string,
  { terminal = false, input = '' }: { terminal?: boolean; input?: string | Iterable<Buffer> } = {},
) {
  const out = recorder(terminal);
  const err = recorder(false);
  const environment = { HOME: '/nonexistent', SERVICE_URL: address, SERVICE_API_KEY: 'k', NO_COLOR: '1' };
  const exitCode = await runCli({
    args,
    environment,
    stdin: async function* stdin() {
      if (typeof input === 'string') yield input;
      else yield* input;
    },
    out: new Writer(out.stream, environment),
    err: new Writer(err.stream, environment),
    isInteractive: false,
  });
  return { exitCode, out: out.text(), err: err.text() };
}

/** A server that gives every request the same answer. */
async function startPeer(t: TestContext, answer: (reply: ServerResponse) => void): Promise<string> {
  const server = createServer((request, reply) => request.resume().on('end', () => answer(reply)));
  return (await listenFor(t, server)).url;
}

/** Every text of a value made hostile. */
function poisoned(value: unknown): unknown {
  if (typeof value === 'string') return `${value}${hostile}`;
  if (Array.isArray(value)) return value.map(poisoned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one)]));
}

/** The commands that send no request, or have output of their own. */
const others = ['serve', 'admin-key', 'packets watch', 'mcp', ...maintenance.map(({ name }) => name)];

/** A command line for each command that sends a request, with values for its operands and required options. */
const commandLines = commands
  .filter(({ name }) => !others.includes(name))
  .map(({ name, operands, flags = [] }) => [
    ...name.split(' '),
    ...operands.map(() => 'id'),
    ...flags.flatMap(({ flags: text, required }) => (required ? [text.match(/--[\w-]+/)![0], 'https://x.example'] : [])),
    ...(flags.some(({ flags: text }) => text.startsWith('--agent-id')) ? ['--agent', 'a'] : []),
    ...(flags.some(({ flags: text }) => text.startsWith('--secret')) ? ['--secret', 'sixteen characters'] : []),
    ...(flags.some(({ flags: text }) => text.startsWith('--source-id')) ? ['--source-id', 'a', '--target-id', 'b', '--summary', 's'] : []),
    ...(name === 'packets update' ? ['--summary', 's'] : []),
  ]);

/** One object with the fields of all answers, so that it is an answer to every command that expects an object. */
const anyAnswer: unknown = Object.assign(
  {},
  ...Object.values(routes).map(({ responses }) => Object.entries(responses).find(([status]) => status < '300')?.[1].example),
);

describe('Whatever a server answers', () => {
  const bodies: [string, number, unknown][] = [
    ['an answer', 200, poisoned(anyAnswer)],
    ['a list', 200, poisoned([anyAnswer])],
    ...[{}, [], null, hostile, 7, [null], { packets: 7, total: hostile }, { packets: [{}] }].map(
      (body) => ['an answer of another type', 200, body] as [string, number, unknown],
    ),
    ...[
      { detail: hostile, code: hostile, field: hostile, errors: [{}, null, 7, { field: hostile, detail: hostile }], request_id: hostile },
      { detail: 7, code: {}, field: [], errors: 'x', claimed_by: { agent_id: hostile, claimed_at: hostile } },
      { detail: 'No', errors: [null, null], claimed_by: 7 },
    ].map((body) => ['an error', 409, body] as [string, number, unknown]),
  ];

  test('every command prints printable text only, and never a stack [H309]', async (t) => {
    let current: (reply: ServerResponse) => void = () => undefined;
    const address = await startPeer(t, (reply) => current(reply));
    for (const [place, [kind, status, body]] of bodies.entries()) {
      current = (reply) => {
        reply.writeHead(status, { 'x-request-id': 'r\u009b2J\u0085', 'x-total-count': '1' });
        reply.end(JSON.stringify(body));
      };
      // Every command gets the answers with its fields, and of the others every fourth; `.ci/full` sends it all.
      for (const line of commandLines.filter((_, index) => walksAll || place < 2 || (index + place) % 4 === 0)) {
        for (const format of ['table', 'json']) {
          const what = `${kind} ${JSON.stringify(body)?.slice(0, 200)}: ${line.join(' ')} ${format}`;
          const { exitCode, out, err } = await run([...line, '--format', format], address, { input: `${hostile}\n`, terminal: true });
          assert.doesNotMatch(out, unprintable, what);
          assert.doesNotMatch(err, unprintable, what);
          assert.doesNotMatch(err, /Unexpected error|^\s+at /m, `${what}\n${err}`);
          assert.ok(exitCode === 0 || exitCode === 1 || exitCode === 2, what);
          if (format === 'json' && exitCode === 0 && out !== '' && line[0] !== 'open') assert.doesNotThrow(() => JSON.parse(out), what);
        }
      }
    }
  });

  test('--verbose prints the id of a request, and a misspelt command, as printable text', async (t) => {
    const address = await startPeer(t, (reply) => void reply.writeHead(200, { 'x-request-id': 'r\u009b2J\u0085' }).end('{}'));
    const { err } = await run(['list', '--verbose'], address);
    assert.match(err, /^< 200 request r 2J $/m);
    assert.doesNotMatch(err, unprintable);
    assert.doesNotMatch((await run([`pack${hostile}`], address)).err, unprintable);
    assert.doesNotMatch((await run(['get', 'x', `--stat${hostile}`], address)).err, unprintable);
  });

  test('packets watch prints printable text only, and refuses an event that is not JSON', async (t) => {
    const event = { type: 'packet.created', packet_id: hostile, data: poisoned(packetExample), timestamp: hostile };
    const stream = (data: string) => `id: 1\nevent: packet.created\ndata: ${data}\n\n`;
    for (const data of [JSON.stringify(event), '7', 'null', '{}', '{"packet_id":7,"data":{}}', 'not json']) {
      let turn = 0;
      const address = await startPeer(t, (reply) => {
        turn += 1;
        if (turn > 1) return void reply.writeHead(401).end('{"detail":"No.","code":"UNAUTHORIZED"}');
        reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(`retry: 1\n\n${stream(data)}`);
      });
      for (const format of ['table', 'json']) {
        const { exitCode, out, err } = await run(['packets', 'watch', '--format', format], address);
        assert.equal(exitCode, 1);
        assert.doesNotMatch(out + err, unprintable);
        assert.doesNotMatch(err, /Unexpected error|^\s+at /m, data);
      }
    }
  });

  test('a JSON answer keeps its value, since unprintable characters in it are escaped [H302]', async (t) => {
    const body = { packets: [], total: 0, note: hostile };
    const address = await startPeer(t, (reply) => void reply.writeHead(200).end(JSON.stringify(body)));
    for (const terminal of [true, false])
      assert.deepEqual(JSON.parse((await run(['list', '--format', 'json'], address, { terminal })).out), JSON.parse(JSON.stringify(body)));
  });
});

describe('An input that never ends', () => {
  /** Chunks without a line end; reading beyond a gibibyte fails the test. */
  function* endless() {
    const chunk = Buffer.alloc(16 * 1024 * 1024, ' ');
    for (let count = 0; count < 64; count += 1) yield chunk;
    assert.fail('the input is read without a bound');
  }

  test('is refused beyond a bound, as a document, as a line of a file, and as an answer [H309]', async (t) => {
    const hitl = { question: 'Refund?', reason: '', options: null };
    const context = { summary: 's', conversation_state: [], artifacts: [], custom: {} };
    const packet = { status: 'awaiting_human', hitl, context, decisions: [], actions: { pending: [], completed: [], failed: [] } };
    const address = await startPeer(t, (reply) => void reply.writeHead(200).end(JSON.stringify(packet)));
    const whole = await run(['create', '-f', '-'], address, { input: endless() });
    assert.deepEqual([whole.exitCode, whole.err.includes('standard input is larger than 256 MiB')], [2, true], whole.err);
    const folder = temporaryFolder(t);
    const file = join(folder, 'packets.jsonl');
    writeFileSync(file, '');
    truncateSync(file, 600 * 1024 * 1024);
    const line = await run(['create', '-f', file], address);
    assert.deepEqual([line.exitCode, line.err.includes('packets.jsonl has a line of more than 64 MiB')], [2, true], line.err);
    const answer = await run(['respond', 'id', '--responded-by', 'dana'], address, { input: endless() });
    assert.deepEqual([answer.exitCode, answer.err.includes('The answer has a line of more than 64 MiB')], [2, true], answer.err);
  });
});

test('Every option of a command that sends a request sets a field or a header that its route takes', () => {
  const known = new Set([
    ...Object.keys(Hitl.properties),
    ...Object.values(routes).flatMap(({ query, body, headers }: { query?: object; body?: object; headers?: object }) => [
      ...[query, body].flatMap((schema) => Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})),
      ...Object.keys(headers ?? {}).map((name) => name.toLowerCase()),
    ]),
  ]);
  assert.ok(known.has('status') && Object.keys(operations).length > 30);
  for (const { name, flags = [] } of commands)
    for (const { field, header } of flags)
      if ((field ?? header) !== undefined) assert.ok(known.has((field ?? header)!), `${name} ${field}`);
});
