import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { trace } from '@opentelemetry/api';

import { createHandoffClient } from '../../src/client.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { createHandoff } from '../../src/server.ts';
import { launchBrowser } from '../../test/support/browser.ts';
import { listen } from '../../test/support/listen.ts';
import { startProgram } from '../../test/support/program.ts';
import { headersOf, packetFrom, registerTracing } from './agent.ts';
import { type OtlpRequest, zipkinSpansOf } from './translate.ts';

/**
 * `npx node tools/zipkin/run.ts FOLDER [PICTURE]`: shows one trace from the agent that creates a packet through two agents and a person
 * in a Zipkin from Maven Central, which is kept in the folder, or in the running one at ZIPKIN_URL, and takes the picture. Needs
 * Java 17, Maven and Chromium; by hand.
 */
const version = process.env.ZIPKIN_VERSION ?? '3.6.1';
const folder = resolve(process.argv[2] ?? 'zipkin');
const picture = process.argv[3];

/** How long the person of the scenario reads the question, in milliseconds. */
const readingMs = 3000;

/** The path of Zipkin's program, which is got from Maven Central unless the folder has it. */
function install(): string {
  const jar = join(folder, `zipkin-server-${version}-exec.jar`);
  if (!existsSync(jar)) {
    mkdirSync(folder, { recursive: true });
    const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy';
    const artifact = `-Dartifact=io.zipkin:zipkin-server:${version}:jar:exec`;
    execFileSync('mvn', ['-q', '-B', copy, artifact, `-DoutputDirectory=${folder}`], { stdio: 'inherit' });
  }
  assert.ok(existsSync(jar), `${jar} is not there, but ${readdirSync(folder).join(', ')}`);
  return jar;
}

/** Waits until `read` finds something. */
async function until<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 2400; tries += 1) {
    const found = await read().catch(() => undefined);
    if (found !== undefined) return found;
    await sleep(500);
  }
  throw new Error(`${what} did not come.`);
}

/** Takes what exporters of OpenTelemetry send and passes it to Zipkin, whose own receiver for OTLP is in no registry. */
async function startReceiver(zipkin: string) {
  const pass = async (request: IncomingMessage) => {
    const given = JSON.parse(Buffer.concat(await request.toArray()).toString()) as OtlpRequest;
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${zipkin}/api/v2/spans`, { method: 'POST', headers, body: JSON.stringify(zipkinSpansOf(given)) });
    assert.equal(answer.status, 202, await answer.text());
  };
  const server = createServer((request, response) => {
    pass(request).then(
      () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, server };
}

/** Answers the open question of a packet on the page of an answer link, as a person in a browser. */
async function answer(client: ReturnType<typeof createHandoffClient>, id: string): Promise<void> {
  await client.getPacket({ params: { id }, query: { wait_seconds: 60, until: 'awaiting_human' } });
  await sleep(readingMs);
  const { url } = await client.createAnswerLink({ params: { id }, body: { responder: 'dana' } });
  const [digest = ''] = /(?<=name="digest" value=")[0-9a-f]+/.exec(await (await fetch(url)).text()) ?? [];
  const sent = await fetch(url, { method: 'POST', body: new URLSearchParams({ digest, response: 'Approve' }) });
  assert.equal(sent.status, 200, await sent.text());
}

interface ZipkinSpan {
  readonly name: string;
  readonly localEndpoint: { readonly serviceName: string };
}

/** Starts a Zipkin that keeps its spans in memory. */
async function startZipkin() {
  const jar = install();
  const port = await freePort();
  const env = { ...process.env, QUERY_PORT: String(port), STORAGE_TYPE: 'mem' };
  return { url: `http://127.0.0.1:${port}`, java: startProgram(['java', '-Xmx512m', '-jar', jar], { env }) };
}

const { url: zipkin, java } = process.env.ZIPKIN_URL ? { url: process.env.ZIPKIN_URL, java: undefined } : await startZipkin();
const servicePort = await freePort();
const agents: ReturnType<typeof startProgram>[] = [];
try {
  await until('Zipkin', async () => ((await fetch(`${zipkin}/health`)).ok ? true : undefined));
  const receiver = await startReceiver(zipkin);
  const url = `http://127.0.0.1:${servicePort}`;
  await using handoff = await createHandoff({ port: servicePort, publicUrl: url, otlpEndpoint: receiver.url });
  const env = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, SERVICE_URL: url, SERVICE_API_KEY: handoff.adminKey };
  const program = fileURLToPath(new URL('agent.ts', import.meta.url));
  for (const name of ['resolver', 'bookkeeper']) agents.push(startProgram([process.execPath, program, name], { env, endBy: 'SIGTERM' }));

  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = receiver.url;
  const provider = registerTracing('frontline');
  const client = createHandoffClient({ baseUrl: url, apiKey: handoff.adminKey });
  const { traceId } = await trace.getTracer('frontline').startActiveSpan('hand order 4711 over', async (span) => {
    const body = packetFrom('frontline', 'resolver', 'Order 4711 was charged twice; the customer asks for a refund.');
    const { id } = await client.createPacket({ headers: headersOf(span), body });
    await answer(client, id);
    await until('the end of the case', async () => {
      const { packets } = await client.listPackets({ query: { status: 'completed' } });
      return packets.length === 2 ? true : undefined;
    });
    span.end();
    return span.spanContext();
  });
  await provider.shutdown();

  const expected = ['frontline hand order 4711 over', 'resolver work resolver', 'baton-handoff question', 'bookkeeper work bookkeeper'];
  const spans = await until('The trace', async () => {
    const found = (await (await fetch(`${zipkin}/api/v2/trace/${traceId}`)).json()) as ZipkinSpan[];
    const names = found.map(({ name, localEndpoint }) => `${localEndpoint.serviceName} ${name}`);
    return expected.every((name) => names.includes(name)) ? names : undefined;
  });
  console.log(`Zipkin ${version} has one trace ${traceId} with ${spans.length} spans:\n${spans.join('\n')}`);
  if (picture !== undefined) {
    const browser = await launchBrowser();
    const page = await browser.newPage({ viewport: { width: 1280, height: 480 } });
    // A busy machine may send the page's script too slowly for Zipkin's own time limit.
    const isShown = page.getByText('bookkeeper: work bookkeeper');
    await until('The page', async () => {
      await page.goto(`${zipkin}/zipkin/traces/${traceId}`);
      await isShown.waitFor({ timeout: 10_000 });
      return true;
    });
    await page.screenshot({ path: picture });
    await browser.close();
  }
  receiver.server.close();
  receiver.server.closeAllConnections();
} finally {
  for (const program of [...agents, java]) program?.child.kill('SIGTERM');
}
