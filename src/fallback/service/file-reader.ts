import { ServiceError } from '../../kit/errors.ts';
import { parseJson } from '../../kit/http/json.ts';
import type { Finding } from '../model/finding.ts';
import { targets } from '../model/targets.ts';
import { linesOf } from '../rules/targets/field-lines.ts';
import { type FileToImport, importChain } from '../rules/targets/import.ts';
import type { TaskResult } from './liquid.ts';
import { readYaml } from './yaml-reader.ts';

/** A file to import: its content as text or already parsed. */
export type ImportedFile = Omit<FileToImport, 'value'> & { readonly content: unknown };

/** What a file gives: a chain request that is not validated yet, and the findings. */
export interface ReadFile {
  readonly request: unknown;
  readonly findings: readonly Finding[];
}

/** Reads a file; the text of the result is a `ReadFile` as JSON. The findings of a text have the lines of their fields. */
export function readFile({ content, ...file }: ImportedFile): TaskResult {
  try {
    if (typeof content !== 'string') return { text: JSON.stringify(importChain({ ...file, value: content })) };
    if (content.trim() === '') return { fault: 'content must not be empty.', line: null, column: null };
    const isYaml = targets[file.format].contentType === 'application/yaml';
    const json: TaskResult = isYaml ? readYaml(content, file.format) : { text: content };
    if (!('text' in json)) return json;
    const { request, findings } = importChain({ ...file, value: parsed(json.text) });
    return { text: JSON.stringify({ request, findings: withLines(findings, content) } satisfies ReadFile) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, status, message, field, extra } = error;
    return { refusal: { code, status, message, field, extra } };
  }
}

/** The value of a JSON text, by the rules of requests. @throws ServiceError 400 */
function parsed(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError(error, error.message.replace(/^The body/, 'content'), { field: 'content' });
  }
}

function withLines(findings: readonly Finding[], content: string): readonly Finding[] {
  const fields = [...new Set(findings.flatMap(({ field }) => field ?? []))];
  if (fields.length === 0) return findings;
  const lines = linesOf(content, fields);
  return findings.map((finding) => ({ ...finding, line: finding.field === null ? null : lines[fields.indexOf(finding.field)]! }));
}
