import {
  acceptedContent,
  type CallToolResult,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  ResourceNotFoundError,
  type ServerContext,
} from '@modelcontextprotocol/server';

import type { Extension, Handlers, McpRequest } from '../../src/handoff/mcp/server.ts';

/** A pixel, and the shortest WAV file. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

const text = (value: string) => ({ type: 'text' as const, text: value });
const image = { type: 'image' as const, data: png, mimeType: 'image/png' };
const embedded = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
});
const done = (...content: CallToolResult['content']): CallToolResult => ({ content });

type Args = Readonly<Record<string, unknown>>;
type Run = (args: Args, context: ServerContext) => object | Promise<object>;

const state = createRequestStateCodec<{ step: number; name?: string }>({ key: 'a key for the conformance suite only' });
const stated = async ({ mcpReq }: ServerContext) => {
  const given = mcpReq.requestState<string>();
  return given === undefined ? undefined : state.verify(given, undefined as never);
};

const object = (properties: Record<string, object>) => ({ type: 'object' as const, properties, required: Object.keys(properties) });
const elicit = (message: string, properties: Record<string, object>) =>
  inputRequired.elicit({ message, requestedSchema: object(properties) as never });
const sample = (question: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(question) }], maxTokens });
const askName = () => elicit('What is your name?', { name: { type: 'string' } });
const sampled = (view: ReturnType<typeof inputResponse>) => JSON.stringify(view.kind === 'sampling' ? view.result.content : view);

/** The tools that the scenarios of the suite call. */
const tools: Readonly<Record<string, Run>> = {
  test_simple_text: () => done(text('This is a simple text response for testing.')),
  test_image_content: () => done(image),
  test_audio_content: () => done({ type: 'audio', data: wav, mimeType: 'audio/wav' }),
  test_embedded_resource: () => done(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  test_multiple_content_types: () =>
    done(
      text('Multiple content types test:'),
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  test_error_handling: () => ({ ...done(text('This tool intentionally returns an error for testing')), isError: true }),
  async test_tool_with_logging(_, { mcpReq }) {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) await mcpReq.log('info', data);
    return done(text('Logged.'));
  },
  async test_tool_with_progress(_, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100])
      if (progressToken !== undefined)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    return done(text('Done.'));
  },
  test_logging_tool: async (_, { mcpReq }) => {
    await mcpReq.log('info', 'A message that nobody asked for.');
    return done(text('Done.'));
  },
  test_streaming_elicitation: (_, { mcpReq }) =>
    mcpReq.inputResponses === undefined ? inputRequired({ inputRequests: { user_name: askName() } }) : done(text('Done.')),
  greet: ({ name }) => done(text(`Hello, ${name}!`)),
  test_missing_capability: (_, { mcpReq }) =>
    mcpReq.inputResponses === undefined ? inputRequired({ inputRequests: { question: sample('Hello?', 100) } }) : done(text('Done.')),
  test_input_required_result_elicitation(_, { mcpReq }) {
    const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.name;
    return typeof name === 'string' ? done(text(`Hello, ${name}!`)) : inputRequired({ inputRequests: { user_name: askName() } });
  },
  test_input_required_result_sampling(_, { mcpReq }) {
    const view = inputResponse(mcpReq.inputResponses, 'capital_question');
    return view.kind === 'missing'
      ? inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } })
      : done(text(sampled(view)));
  },
  test_input_required_result_list_roots(_, { mcpReq }) {
    const given = mcpReq.inputResponses?.client_roots;
    return given === undefined
      ? inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
      : done(text(JSON.stringify(given)));
  },
  async test_input_required_result_request_state(_, context) {
    const inputRequests = { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) };
    const before = await stated(context);
    return before === undefined ? inputRequired({ inputRequests, requestState: await state.mint({ step: 1 }) }) : done(text('state-ok'));
  },
  async test_input_required_result_tampered_state(_, context) {
    const inputRequests = { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) };
    const before = await stated(context);
    return before === undefined ? inputRequired({ inputRequests, requestState: await state.mint({ step: 1 }) }) : done(text('state-ok'));
  },
  async test_input_required_result_multiple_inputs(_, context) {
    const { inputResponses } = context.mcpReq;
    const inputRequests = { user_name: askName(), greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() };
    if ((await stated(context)) === undefined || inputResponses === undefined)
      return inputRequired({ inputRequests, requestState: await state.mint({ step: 1 }) });
    return done(text(`Hello ${acceptedContent(inputResponses, 'user_name')?.name}, ${JSON.stringify(inputResponses)}`));
  },
  async test_input_required_result_multi_round(_, context) {
    const { inputResponses } = context.mcpReq;
    const before = await stated(context);
    if (before === undefined) {
      const inputRequests = { step1: elicit('Step 1: What is your name?', { name: { type: 'string' } }) };
      return inputRequired({ inputRequests, requestState: await state.mint({ step: 1 }) });
    }
    if (before.step === 1) {
      const name = String(acceptedContent(inputResponses, 'step1')?.name);
      const inputRequests = { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) };
      return inputRequired({ inputRequests, requestState: await state.mint({ step: 2, name }) });
    }
    return done(text(`${before.name} likes ${acceptedContent(inputResponses, 'step2')?.color}`));
  },
  test_input_required_result_capabilities(_, { mcpReq }) {
    if (mcpReq.inputResponses !== undefined) return done(text('Done.'));
    const { envelope = {} } = mcpReq;
    const can = (envelope as Record<string, Record<string, unknown> | undefined>)['io.modelcontextprotocol/clientCapabilities'] ?? {};
    return inputRequired({
      inputRequests: {
        ...(can.elicitation === undefined ? {} : { user_name: askName() }),
        ...(can.sampling === undefined ? {} : { greeting: sample('Generate a greeting', 50) }),
      },
    });
  },
};

/** A task of the suite, played by a question to a person who answers after so many seconds. */
async function slowly(call: Handlers[string], args: Args, context: ServerContext, answer: (packetId: string) => Promise<unknown>) {
  const use = async (name: string, more: Args) =>
    (await call({ method: 'tools/call', params: { name, arguments: { agent_id: 'suite', ...more } } }, context)) as CallToolResult;
  const created = await use('hand_over', { target_agent: 'suite', summary: String(args.label) });
  const { id: packet_id } = created.structuredContent as { id: string };
  await use('claim', { packet_id });
  const asked = await use('ask_human', { packet_id, question: 'Done?', wait_seconds: 0 });
  setTimeout(() => void answer(packet_id), Number(args.seconds) * 1000).unref();
  return asked;
}

const prompts: Readonly<Record<string, { args?: readonly string[]; get: Run }>> = {
  test_simple_prompt: { get: () => ({ messages: [{ role: 'user', content: text('This is a simple prompt for testing.') }] }) },
  test_prompt_with_arguments: {
    args: ['arg1', 'arg2'],
    get: ({ arg1, arg2 }) => ({ messages: [{ role: 'user', content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }] }),
  },
  test_prompt_with_embedded_resource: {
    args: ['resourceUri'],
    get: ({ resourceUri }) => ({
      messages: [
        { role: 'user', content: embedded(String(resourceUri), 'text/plain', 'Embedded resource content for testing.') },
        { role: 'user', content: text('Please process the embedded resource above.') },
      ],
    }),
  },
  test_prompt_with_image: {
    get: () => ({
      messages: [
        { role: 'user', content: image },
        { role: 'user', content: text('Please analyze the image above.') },
      ],
    }),
  },
  test_input_required_result_prompt: {
    get(_, { mcpReq }) {
      const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
      if (context === undefined)
        return inputRequired({
          inputRequests: { user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }) },
        });
      return { messages: [{ role: 'user', content: text(`Use the context ${context}.`) }] };
    },
  },
};

const resources = [
  {
    uri: 'test://static-text',
    name: 'text',
    description: 'A text.',
    mimeType: 'text/plain',
    contents: { text: 'This is the content of the static text resource.' },
  },
  { uri: 'test://static-binary', name: 'binary', description: 'A picture.', mimeType: 'image/png', contents: { blob: png } },
];
const template = { uriTemplate: 'test://template/{id}/data', name: 'template', description: 'A template.', mimeType: 'application/json' };

/** What the conformance suite expects of a server, added to our own. Requests take the same way as all others. */
export const fixtures = (answer: (packetId: string) => Promise<unknown>): Extension => ({
  capabilities: { completions: {}, logging: {} },
  handlers(ours: Handlers): Handlers {
    const also = async (method: string, key: string, more: readonly object[], request: McpRequest, context: ServerContext) => {
      const found = (await ours[method]!(request, context)) as Record<string, object[]>;
      return { ...found, [key]: [...found[key]!, ...more] };
    };
    const listedTools = [...Object.keys(tools), 'slow_compute'].map((name) => ({
      name,
      description: 'A tool of the suite.',
      inputSchema: { type: 'object' },
    }));
    const listedPrompts = Object.entries(prompts).map(([name, { args = [] }]) => ({
      ...{ name, description: 'A prompt of the suite.' },
      arguments: args.map((arg) => ({ name: arg, description: 'An argument.', required: true })),
    }));
    return {
      ...ours,
      'tools/list': (request, context) => also('tools/list', 'tools', listedTools, request, context),
      'tools/call': (request, context) => {
        const { name, arguments: args = {} } = request.params as { name: string; arguments?: Args };
        if (name === 'slow_compute') return slowly(ours['tools/call']!, args, context, answer);
        return tools[name]?.(args, context) ?? ours['tools/call']!(request, context);
      },
      'prompts/list': (request, context) => also('prompts/list', 'prompts', listedPrompts, request, context),
      'prompts/get': (request, context) => {
        const { name, arguments: args = {} } = request.params as { name: string; arguments?: Args };
        return prompts[name]?.get(args, context) ?? ours['prompts/get']!(request, context);
      },
      'resources/list': (request, context) =>
        also(
          'resources/list',
          'resources',
          resources.map(({ contents: _, ...rest }) => rest),
          request,
          context,
        ),
      'resources/templates/list': (request, context) => also('resources/templates/list', 'resourceTemplates', [template], request, context),
      'resources/read': (request, context) => {
        const uri = String(request.params?.uri);
        const found = resources.find((one) => one.uri === uri);
        if (found !== undefined) return { contents: [{ uri, mimeType: found.mimeType, ...found.contents }] };
        const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
        if (id !== undefined)
          return {
            contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
          };
        if (uri.startsWith('test:')) throw new ResourceNotFoundError(uri);
        return ours['resources/read']!(request, context);
      },
      'completion/complete': () => ({ completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } }),
    };
  },
});
