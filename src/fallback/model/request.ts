import Type, { type Static } from 'typebox';

import { choice, described, object, orNull, record } from '../../kit/schemas.ts';
import { maxTokens } from './chain.ts';
import { optional, whole } from './common.ts';

/** The APIs by which a gateway is called: OpenAI's chat completions, Anthropic's messages and OpenAI's responses. */
export const endpoints = ['chat', 'messages', 'responses'] as const;
const efforts = ['low', 'medium', 'high'] as const;

export type Endpoint = (typeof endpoints)[number];
export type Effort = (typeof efforts)[number];

/** The most requests whose shapes a test takes, and the most tools of one. */
export const maxRequests = 200;
const maxTools = 128;

const anyObject = (description: string) => record(Type.Unknown(), { description });

/** The shape of the requests of a test. */
export const RequestShape = described('The shape of the requests of a test, in the modes `drill`, `live` and `rehearsal`.', {
  endpoint: optional(
    choice(endpoints, {
      description:
        'The API by which the gateway of a rehearsal is called: `chat` (OpenAI chat completions), `messages` (Anthropic), `responses` (OpenAI). Default: `chat`, or that of each of `requests`.',
    }),
  ),
  stream: optional(
    Type.Union([Type.Boolean(), Type.Literal('both')], {
      description:
        'Whether answers are streamed; `both`: each scene once with and once without. Default: false, or that of each of `requests`.',
    }),
  ),
  tools: optional(
    Type.Union(
      [Type.Boolean(), Type.Array(anyObject('A definition, as one of the three APIs takes it.'), { minItems: 1, maxItems: maxTools })],
      {
        description: '`true`: one tool, which a fake provider calls; or the definitions of tools.',
      },
    ),
  ),
  images: optional(Type.Boolean({ description: 'Whether the prompt has a small image.' })),
  reasoning: optional(choice(efforts, { description: 'The effort of reasoning.' })),
  response_format: optional(
    Type.Union([Type.Boolean(), anyObject('A format, as OpenAI takes it.')], { description: '`true`: a JSON schema; or a format.' }),
  ),
  max_tokens: optional(whole(1, maxTokens, 'The token limit. Default: that of each provider.')),
  requests: optional(
    Type.Array(anyObject('The body of a request.'), {
      minItems: 1,
      maxItems: maxRequests,
      description:
        'The bodies of real requests instead. Only their shape is sent: texts become filler of the same length and images a small one; names, roles, tools, schemas and limits stay. Equal shapes count once.',
    }),
  ),
});
export type RequestShape = Static<typeof RequestShape>;

/** The shape of a prompt's request in a result. */
export const SentShape = object({
  endpoint: choice(endpoints, { description: 'The API that was called: that of the gateway, else that of the last provider.' }),
  stream: Type.Boolean({ description: 'Whether the answer was streamed.' }),
  shape: orNull(Type.Integer({ minimum: 0 }), 'The index in `requests` of the first request with this shape; null without `requests`.'),
});
export type SentShape = Static<typeof SentShape>;

/** What the caller of a gateway got. */
export const Received = described('What the caller of the gateway got.', {
  status: orNull(Type.Integer(), 'The HTTP status; null without a response.'),
  text_chunks: Type.Integer({ minimum: 0, description: 'The parts of text, or of the arguments of a tool, that arrived.' }),
  duplicated: Type.Integer({ minimum: 0, description: 'How many of the parts that fake providers send arrived more than once.' }),
  lost: Type.Integer({ minimum: 0, description: "How many of the parts of the last provider's answer did not arrive." }),
  tool_calls: Type.Array(
    object({
      name: orNull(Type.String(), 'The name of the tool.'),
      valid: Type.Boolean({ description: 'Whether its arguments are JSON.' }),
    }),
    { description: 'The calls of tools.' },
  ),
  finish_reason: orNull(Type.String(), 'Why the answer ended, in the words of the API; null if it does not say so.'),
  error: orNull(Type.String(), 'The error in a few words; null without one.'),
  model: orNull(Type.String(), 'The model that the answer names.'),
  time_to_first_token_ms: orNull(Type.Number({ minimum: 0 }), 'The time to the first content of a streamed answer.'),
});
export type Received = Static<typeof Received>;

/** The error of an answer that did not come, or did not end, in time. */
export const noAnswer = 'no answer in time';
