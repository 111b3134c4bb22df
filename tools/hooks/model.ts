import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A model on loopback that follows a script: it calls one tool, and ends once it has the result of the call. */
export interface ScriptedModel {
  readonly url: string;
  /** The tool that the model calls, and its arguments. */
  tool: { readonly name: string; readonly input: object };
  /** The results of calls that the model was told, as text. */
  readonly results: string[];
  /** The ids of the calls that the model has made. */
  readonly calls: string[];
  stop(): void;
}

// biome-ignore lint/suspicious/noExplicitAny: programs send messages of many shapes.
type Message = any;

interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: { readonly command?: string };
}

function sse(response: ServerResponse, events: readonly { readonly type: string; readonly [field: string]: unknown }[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

/** The texts of the results in a conversation that follow the last thing its person said. */
function resultsIn(body: Message): string[] {
  if (body.input !== undefined) {
    const said = body.input.findLastIndex((item: Message) => item.type === 'message' && item.role === 'user');
    const after: Message[] = body.input.slice(said + 1);
    return after.filter(({ type }) => type === 'function_call_output').map(({ output }) => JSON.stringify(output));
  }
  const content: Message[] = [body.messages.at(-1)?.content ?? []].flat();
  return content.filter(({ type }) => type === 'tool_result').map((part) => JSON.stringify(part.content));
}

/** Answers as `/v1/messages` does, which Claude Code uses. */
function answerAsMessages(response: ServerResponse, call: Call | undefined): void {
  const block = call ? { type: 'tool_use', id: call.id, name: call.name, input: {} } : { type: 'text', text: '' };
  const delta = call ? { type: 'input_json_delta', partial_json: JSON.stringify(call.input) } : { type: 'text_delta', text: 'Done.' };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'scripted', content: [], stop_reason: null, usage };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
  sse(response, events);
}

/** Answers as `/v1/responses` does, which Codex uses. */
function answerAsResponses(response: ServerResponse, call: Call | undefined): void {
  const wanted = { cmd: call?.input.command, sandbox_permissions: 'require_escalated', justification: 'It makes a file.' };
  const item = call
    ? { type: 'function_call', id: `fc_${call.id}`, call_id: call.id, name: 'exec_command', arguments: JSON.stringify(wanted) }
    : { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.', annotations: [] }] };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const whole = { id: 'resp_1', object: 'response', status: 'completed', output: [item], usage };
  sse(response, [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    { type: 'response.output_item.done', output_index: 0, item: { ...item, status: 'completed' } },
    { type: 'response.completed', response: whole },
  ]);
}

/** Starts the model. */
export async function startModel(tool: ScriptedModel['tool']): Promise<ScriptedModel> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const part of request) text += part;
    const path = request.url!.split('?')[0]!;
    if (path !== '/v1/messages' && path !== '/v1/responses') return void response.writeHead(404).end('{}');
    const body: Message = JSON.parse(text);
    const found = resultsIn(body);
    self.results.push(...found);
    // A program also asks for titles and summaries, without any tool.
    const offered = JSON.stringify(body.tools ?? []);
    const mayCall = found.length === 0 && [self.tool.name, 'exec_command'].some((name) => offered.includes(`"${name}"`));
    const call = mayCall ? { id: `toolu_${randomUUID()}`, ...self.tool } : undefined;
    if (call !== undefined) self.calls.push(call.id);
    (path === '/v1/messages' ? answerAsMessages : answerAsResponses)(response, call);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: ScriptedModel = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tool,
    results: [],
    calls: [],
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
  return self;
}
