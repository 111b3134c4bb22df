import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/kit/free-port.ts';
import { temporaryFolder } from '../support/folder.ts';
import { startProgram } from '../support/program.ts';
import { adminKey, packetRequest, startService, type TestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';
import { startHooked } from '../support/webhooks.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const sampleLines = readFileSync(join(root, 'examples/demo/sample.jsonl'), 'utf8').trimEnd().split('\n');

/** The output and exit code of a demonstration. */
interface Demonstration {
  readonly exitCode: number | null;
  /** Standard output, line by line. */
  readonly lines: string[];
  readonly errors: string;
  /** The final counts by name. */
  readonly counts: Record<string, number>;
}

interface DemonstrationOptions {
  url?: string;
  key?: string;
  args?: string[];
  /** Called with each chunk of output when it arrives. */
  onOutput?: (text: string) => void;
}

/** Runs the demonstration in a separate process. */
async function runDemo({ url = '', key = adminKey, args = [], onOutput = () => undefined }: DemonstrationOptions): Promise<Demonstration> {
  const { INIT_CWD: _, ...inherited } = process.env;
  const environment = { ...inherited, SERVICE_URL: url, SERVICE_API_KEY: key };
  const program = startProgram([process.execPath, 'examples/demo/demo.ts', ...args], { cwd: root, env: environment });
  program.child.stdout!.on('data', onOutput);
  const exitCode = await program.ended;
  const errors = program.stderr();
  const lines = program.stdout().split('\n');
  const closing = lines.flatMap((line) => /^([a-z][a-z ]*[a-z]) {2,}([\d.]+)$/.exec(line) ?? []);
  const counts: Record<string, number> = {};
  for (let index = 0; index < closing.length; index += 3) counts[closing[index + 1]!] = Number(closing[index + 2]);
  return { exitCode, lines, errors, counts };
}

/** Starts listening; returns the base URL for the demonstration. */
async function listening(service: TestService): Promise<string> {
  return `${await service.handoff.start()}/api/v1`;
}

/** A file with these lines, deleted after the test. */
function fileOf(t: TestContext, lines: readonly string[]): string {
  const folder = temporaryFolder(t);
  const file = join(folder, 'input.jsonl');
  writeFileSync(file, lines.join('\n'));
  return file;
}

/** A row of the final table: the numbers of events in the history, the stream and the webhook; undefined without a webhook. */
function comparisonIn(lines: readonly string[], name: string): (number | undefined)[] {
  const row = lines.find((line) => line.startsWith(`${name} `))!;
  return row
    .slice(24)
    .trim()
    .split(/ +/)
    .map((cell) => (cell === '-' ? undefined : Number(cell)));
}

async function totalOf(service: TestService, path: string): Promise<number> {
  const { status, body } = await service.call('GET', path);
  assert.equal(status, 200);
  return body.total;
}

for (const store of stores) {
  describe(`npm run demo on ${store.name}`, () => {
    test("the final counts equal those of the service's lists", async (t) => {
      const service = await startHooked(t, { store });
      const { exitCode, errors, counts, lines } = await runDemo({ url: await listening(service) });
      assert.equal(errors, '');
      assert.equal(exitCode, 0);

      const list = await service.call('GET', '/packets?view=full&limit=200');
      assert.equal(list.status, 200);
      type Listed = { id: string; parent_packet_id: string | null; status: string; actions: { pending: unknown[] } };
      const all: Listed[] = list.body.packets;
      // A question is left open, with a link that shows it.
      const [left, ...others] = all.filter(({ status }) => status === 'awaiting_human');
      assert.deepEqual(others, []);
      const packets = all.filter((packet) => packet !== left);
      const link = lines.find((line) => /\/answer\/[0-9a-f]{96}$/.test(line))!;
      assert.match(await (await fetch(link)).text(), /Did the demonstration work for you\?/);
      const entries = (await totalOf(service, '/audit')) - (await totalOf(service, `/audit?packet_id=${left!.id}`));
      const played = packets.filter(({ parent_packet_id }) => parent_packet_id === null);
      const children = packets.filter(({ parent_packet_id }) => parent_packet_id !== null);
      assert.equal(played.length, sampleLines.length);
      assert.equal(counts.packets, played.length);
      assert.equal(counts.chained, children.length);
      assert.equal(counts.chained, Math.floor(played.length / 3));
      assert.equal(counts.completed, await totalOf(service, '/packets?status=completed'));
      assert.equal(counts.completed, played.length);
      for (const { actions } of played) assert.deepEqual(actions.pending, []);

      assert.equal(counts.claims, await totalOf(service, '/audit?action=claimed'));
      assert.equal(counts['questions asked'], (await totalOf(service, '/audit?action=awaiting_human')) - 1);
      assert.equal(counts['questions answered'], await totalOf(service, '/audit?action=hitl_responded'));
      assert.equal(counts['questions answered'], counts['questions asked']);
      // The audit log has the entries of the histories, the creation of each follow-up, which is not played, and two entries of the webhook.
      assert.equal(counts['history events'], entries - children.length - 2);

      // The stream and the webhook have received the events of the history, and each delivery was printed on arrival.
      const events = entries - counts.chained! - (await totalOf(service, '/audit?action=updated')) - 2;
      assert.deepEqual(comparisonIn(lines, 'all of them'), [events, events, events]);
      assert.equal(lines.filter((line) => /^ +delivered +\S+ of \S+, verified$/.test(line)).length, events);
      const created = packets.length;
      assert.deepEqual(comparisonIn(lines, 'packet.created'), [created, created, created]);
      assert.ok(lines.includes('They agree, packet by packet.'));
      assert.deepEqual((await service.call('GET', '/hooks')).body, []);

      const { text } = await service.call('GET', '//metrics');
      const lost = /service_requests_total\{method="POST",endpoint="[^"]*claim",status="409"\} (\d+)/.exec(text);
      assert.equal(counts['lost claims'], Number(lost?.[1]));
      assert.equal(counts['lost claims'], 2);
      assert.equal(counts['lines skipped'], 0);
      assert.equal(counts['steps refused'], 0);

      // The README quotes the counts.
      const readme = readFileSync(join(root, 'README.md'), 'utf8');
      const quoted = /(\d+) packets are claimed, (\d+) second claims.*\s.*?(\d+) questions are asked.* all (\d+) events/.exec(readme);
      assert.deepEqual(quoted?.slice(1).map(Number), [counts.claims, counts['lost claims'], counts['questions asked'], events]);
    });
  });
}

describe('npm run demo', () => {
  test('a line that is not a create request is reported with its number and skipped', async (t) => {
    const service = await startService(t);
    const good = JSON.stringify(packetRequest());
    const file = fileOf(t, [good, '{"metadata":', '', JSON.stringify({ ...packetRequest(), shape: 'round' }), '[]', '7', good, '{}']);
    const { exitCode, lines, counts } = await runDemo({ url: await listening(service), args: [file] });
    assert.equal(exitCode, 0);
    const skipped = lines.filter((line) => line.includes('skipped ')).map((line) => line.replace(/ +/g, ' ').trim());
    assert.deepEqual(skipped.slice(0, -1), [
      'line 2 skipped This is not JSON.',
      'line 4 skipped shape is not a field of this request; it takes parent_packet_id, metadata, ...',
      'line 5 skipped The packet must be an object, not an array.',
      'line 6 skipped The packet must be an object, not a number.',
      'line 8 skipped metadata is required.',
    ]);
    assert.equal(counts['lines skipped'], 5);
    assert.equal(counts.packets, 2);
    assert.equal(await totalOf(service, '/packets'), 2);
    assert.ok(lines.some((line) => /^line 7 +claimed /.test(line)));
  });

  test('a post with a wrong signature is refused, and the demo exits with 1', async (t) => {
    const service = await startHooked(t);
    let forging: Promise<number> | undefined;
    const forge = async () => {
      const [{ url }] = (await service.call('GET', '/hooks')).body;
      return (await fetch(url, { method: 'POST', body: '{}', headers: { 'x-service-signature': `sha256=${'0'.repeat(64)}` } })).status;
    };
    const { exitCode, lines } = await runDemo({
      url: await listening(service),
      onOutput: (text) => {
        if (text.includes('delivered')) forging ??= forge();
      },
    });
    assert.equal(await forging, 401);
    assert.equal(exitCode, 1);
    assert.ok(lines.includes('1 post with a wrong signature'));
    assert.ok(lines.includes('They differ.'));
  });

  test('without deliveries to this machine, only the stream is compared', async (t) => {
    const service = await startService(t);
    const { exitCode, lines } = await runDemo({ url: await listening(service) });
    assert.equal(exitCode, 0);
    assert.ok(lines.some((line) => /^ +no webhook +start the service with SERVICE_WEBHOOK_ALLOW=127\.0\.0\.1/.test(line)));
    assert.deepEqual(comparisonIn(lines, 'packet.completed'), [sampleLines.length, sampleLines.length, undefined]);
    assert.ok(lines.includes('They agree, packet by packet.'));
  });

  test('an input without any create request is reported line by line, and the demo exits with 1', async (t) => {
    const service = await startService(t);
    const { exitCode, counts, lines } = await runDemo({ url: await listening(service), args: [fileOf(t, ['{}', '{"context":{}}'])] });
    assert.equal(exitCode, 1);
    assert.equal(counts.packets, 0);
    assert.equal(counts['lines skipped'], 2);
    assert.ok(lines.some((line) => /^line 2 +skipped +metadata is required/.test(line)));
  });

  test('a service with a smaller batch limit gets the lines one by one', async (t) => {
    const service = await startService(t, { settings: { SERVICE_BATCH_MAX: '2' } });
    const { exitCode, counts } = await runDemo({ url: await listening(service) });
    assert.equal(exitCode, 0);
    assert.equal(counts.packets, sampleLines.length);
  });

  test('more lines than fit in a batch are sent in several batches, and keep their numbers', async (t) => {
    const service = await startService(t);
    const file = fileOf(
      t,
      Array.from({ length: 22 }, () => JSON.stringify(packetRequest())),
    );
    const { exitCode, counts, lines } = await runDemo({ url: await listening(service), args: [file] });
    assert.equal(exitCode, 0);
    assert.equal(counts.completed, 22);
    const numbers = lines.flatMap((line) => /^line (\d+) +completed/.exec(line)?.[1] ?? []).map(Number);
    assert.deepEqual(
      numbers,
      Array.from({ length: 22 }, (_, index) => index + 1),
    );
  });

  test('every step is a line of at most 100 columns, for any input', async (t) => {
    const service = await startService(t);
    const [title, bell] = ['\u001b]0;owned\u0007', '\u0007'];
    const long = packetRequest({
      metadata: {
        source_agent: { id: 's', name: '長い名前'.repeat(40), framework: 'f' },
        target_agent: { id: `t${bell}`, name: `${title}${'n'.repeat(200)}` },
      },
      context: { summary: `first\nsecond\r${'very '.repeat(100)}` },
      hitl: { required: true, reason: 'r', question: 'q'.repeat(300), options: [{ value: 'x'.repeat(300) }, 'no'] },
    });
    const { exitCode, lines, counts } = await runDemo({ url: await listening(service), args: [fileOf(t, [JSON.stringify(long)])] });
    assert.equal(exitCode, 0);
    assert.equal(counts['questions answered'], 1);
    for (const line of lines) {
      assert.doesNotMatch(line, /\p{Cc}/u);
      const columns = [...line].reduce((sum, character) => sum + (/\p{Script=Han}|い/u.test(character) ? 2 : 1), 0);
      assert.ok(columns <= 100, `${columns} columns: ${line}`);
    }
  });

  test('after a 429 the demo waits for Retry-After, and says so', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '60' } });
    const url = await listening(service);
    for (let count = 0; count < 60; count += 1) assert.equal((await service.call('GET', '/packets')).status, 200);
    service.clock.turn(59);
    const { exitCode, lines, counts } = await runDemo({
      url,
      onOutput: (text) => {
        if (text.includes('waiting')) service.clock.turn(1);
      },
    });
    assert.equal(exitCode, 0);
    assert.ok(lines.some((line) => /^ +waiting +1 second: the service answered 429\./.test(line)));
    assert.equal(counts.completed, sampleLines.length);
  });

  test('a longer wait ends the demo with a sentence', async (t) => {
    const service = await startService(t, { settings: { SERVICE_HANDOFFS_PER_DAY_BUSINESS: '0' } });
    const { exitCode, errors } = await runDemo({ url: await listening(service) });
    assert.equal(exitCode, 1);
    assert.match(
      errors,
      /^The service limits this key, and waiting 90 seconds would not help: The tenant's daily quota is 0 packets; an admin can raise it\./,
    );
  });

  test('a packet whose step is refused does not end the others, and is counted', async (t) => {
    // A completed action grows by its result, so that the packet exceeds the size limit of its tier.
    const service = await startService(t, { settings: { SERVICE_PACKET_BYTES_BUSINESS: '16384' } });
    const pending = Array.from({ length: 300 }, (_, index) => ({ id: `${index}`, description: 'd', assignee: '' }));
    const file = fileOf(t, [JSON.stringify(packetRequest({ actions: { pending } })), JSON.stringify(packetRequest())]);
    const { exitCode, counts, lines } = await runDemo({ url: await listening(service), args: [file] });
    assert.equal(exitCode, 1);
    assert.equal(counts.packets, 2);
    assert.equal(counts['steps refused'], 1);
    assert.ok(lines.some((line) => /^line 1 +refused +413 /.test(line)));
    assert.equal(counts.completed, 1);
  });

  test('without an address and a key it plays the sample in a service of its own, with signed deliveries', async () => {
    const { exitCode, errors, lines, counts } = await runDemo({ key: '' });
    assert.equal(exitCode, 0, errors);
    assert.match(lines[0]!, /^Playing examples\/demo\/sample\.jsonl against http:\/\/127\.0\.0\.1:\d+\/api\/v1$/);
    assert.equal(counts.packets, sampleLines.length);
    const [history, stream, webhook] = comparisonIn(lines, 'packet.created');
    assert.ok(history! > 0);
    assert.deepEqual([stream, webhook], [history, history]);
    assert.ok(!lines.some((line) => line.startsWith('A question is open')), 'nobody can answer it when the service has ended');
  });

  test('with an address but no key the error names the variable for it', async () => {
    const { exitCode, errors, lines } = await runDemo({ url: 'http://127.0.0.1:1/api/v1', key: '' });
    assert.equal(exitCode, 1);
    assert.equal(errors, 'SERVICE_API_KEY must hold an API key. The first admin key is printed when the service first starts.\n');
    assert.deepEqual(lines, ['']);
  });

  test('with a wrong key the error says that the key was refused, without quoting it', async (t) => {
    const service = await startService(t);
    const { exitCode, errors } = await runDemo({ url: await listening(service), key: 'a-wrong-key-0123456789' });
    assert.equal(exitCode, 1);
    assert.match(errors, /^The service refused the key in SERVICE_API_KEY\./);
    assert.doesNotMatch(errors, /a-wrong-key/);
  });

  test('if no service answers, the error has the address', async () => {
    const url = `http://127.0.0.1:${await freePort()}/api/v1`;
    const { exitCode, errors } = await runDemo({ url });
    assert.equal(exitCode, 1);
    assert.equal(
      errors,
      `No handoff service answers at ${url} (ECONNREFUSED). Start one with "npm start", or set SERVICE_URL (it ends in /api/v1).\n`,
    );
  });

  test('at an address that is not the API the error says so', async (t) => {
    const service = await startService(t);
    const url = (await listening(service)).replace('/api/v1', '/api/v2');
    const { exitCode, errors } = await runDemo({ url });
    assert.equal(exitCode, 1);
    assert.match(errors, /^No handoff service answers at .*\/api\/v2 \(There is nothing at this path\.\)\. .*it ends in \/api\/v1/);
  });

  test('the error names a missing file', async (t) => {
    const service = await startService(t);
    const { exitCode, errors } = await runDemo({ url: await listening(service), args: ['/no/such/file.jsonl'] });
    assert.equal(exitCode, 1);
    assert.equal(errors, "/no/such/file.jsonl can't be read (ENOENT).\n");
  });
});
