import { type Emitter, Liquid } from 'liquidjs';

import type { ServiceError } from '../../kit/errors.ts';
import { duration } from '../../kit/wording.ts';

/** The longest template, in bytes of UTF-8. */
export const maxTemplateBytes = 64 * 1024;
/** The longest output of a template, in bytes of UTF-8. */
const maxOutputBytes = 1024 * 1024;
/** How long a template may render, in milliseconds, before the engine ends it with line and column. */
const renderMs = 1_000;
/** How much a template may allocate, in the engine's unit of characters and list items. */
const allocations = 8 * 1024 * 1024;

/**
 * The text that a task of the sandbox makes, the fault of its input with line and column (from 1) if known, or the refusal that
 * its caller gets.
 */
export type TaskResult =
  | { text: string }
  | { fault: string; line: number | null; column: number | null }
  | { refusal: Pick<ServiceError, 'code' | 'status' | 'message' | 'field' | 'extra'> };

/**
 * Renders a Liquid template with the variables of `scope`, which must be plain data. Unknown names and filters are
 * faults, and tags that read files are unknown. Output, time and allocations are limited.
 */
export function renderTemplate(template: string, scope: Record<string, unknown>): TaskResult {
  const engine = createEngine();
  try {
    return { text: String(engine.parseAndRenderSync(template, scope)) };
  } catch (error) {
    return describe(error);
  }
}

function createEngine(): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    // Without this option the engine would look for files.
    templates: {},
    timezoneOffset: 0,
    preserveTimezones: true,
    locale: 'en-US',
    parseLimit: maxTemplateBytes,
    renderLimit: renderMs,
    memoryLimit: allocations,
  });
  for (const tag of ['include', 'render', 'layout', 'block']) delete engine.tags[tag];
  engine.registerFilter('shell', (value: unknown) => `'${text(value).replaceAll("'", "'\\''")}'`);
  engine.registerFilter('cell', (value: unknown) => text(value).replaceAll('|', '\\|'));
  engine.registerFilter('duration', (value: unknown) => duration(Number(value)));
  // The text that a template produces, its output and that of `capture`, goes through an emitter that counts it.
  const { renderer } = engine;
  const render = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = (templates, context, emitter = createEmitter()) => render(templates, context, emitter);
  return engine;
}

function createEmitter(): Emitter {
  let bytes = 0;
  return {
    buffer: '',
    write(value: unknown) {
      const piece = text(value);
      bytes += Buffer.byteLength(piece);
      if (bytes > maxOutputBytes) throw new Error(`The output is larger than ${maxOutputBytes} bytes.`);
      this.buffer += piece;
    },
  };
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  return Array.isArray(value) ? value.map(text).join('') : String(value);
}

/** Replacements for messages of the engine that callers would not understand. */
const sentences: readonly [RegExp, string][] = [
  [/^template render limit exceeded/, `The template takes longer than ${duration(renderMs)}.`],
  [/^memory alloc limit exceeded/, 'The template builds too large a range, list or text.'],
];

function describe(error: unknown): TaskResult {
  if (!(error instanceof Error)) throw error;
  const { token } = error as { token?: { getPosition?(): [number, number] } };
  const [line = null, column = null] = token?.getPosition?.() ?? [];
  // The engine appends the position to its message; it is returned separately.
  const message = error.message.replace(/(, file:[^,]*)?, line:\d+, col:\d+$/, '');
  const [, other] = sentences.find(([pattern]) => pattern.test(message)) ?? [];
  const sentence = other ?? `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return { fault: /[.!?]$/.test(sentence) ? sentence : `${sentence}.`, line, column };
}
