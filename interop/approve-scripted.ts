import { appendFileSync } from 'node:fs';
import { type Model, Usage } from '@openai/agents';
import { MockLanguageModelV3 } from 'ai/test';

const given = JSON.stringify({ order: 'ORD-4711', amount: 500 });

/** The tool. What it does can't be undone. */
export function refundOrder({ order, amount }: { order: string; amount: number }, ..._: unknown[]): string {
  appendFileSync(process.env.LEDGER!, `${order} ${amount}\n`);
  return `refunded ${amount}`;
}

/** A model of the AI SDK that follows a script: it calls the tool, and says what came of it. */
export const aiModel = () =>
  new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1)!;
      const isDone = last.role === 'tool' && last.content.some(({ type }) => type === 'tool-result');
      const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      };
      return isDone
        ? {
            content: [{ type: 'text', text: `The tool said: ${JSON.stringify(last.content)}` }],
            finishReason: { unified: 'stop', raw: 'stop' },
            usage,
            warnings: [],
          }
        : {
            content: [{ type: 'tool-call', toolCallId: 'call-ai-sdk', toolName: 'refund', input: given }],
            ...{ finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage, warnings: [] },
          };
    },
  });

/** A model of the OpenAI Agents SDK that follows the same script. */
export const agentsModel = (): Model =>
  ({
    async getResponse({ input }: { input: unknown }) {
      const last = (Array.isArray(input) ? input.at(-1) : undefined) as { type?: string; output?: unknown } | undefined;
      const usage = new Usage();
      const text = `The tool said: ${JSON.stringify(last?.output)}`;
      return last?.type === 'function_call_result'
        ? { usage, output: [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] }] }
        : { usage, output: [{ type: 'function_call', callId: 'call-agents-js', name: 'refund', status: 'completed', arguments: given }] };
    },
  }) as unknown as Model;
