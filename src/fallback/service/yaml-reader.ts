import { isCollection, isNode, LineCounter, parseDocument, visit } from 'yaml';

import type { ImportFormat } from '../model/targets.ts';
import { yamlOptions } from '../rules/targets/yaml.ts';
import type { TaskResult } from './liquid.ts';

/** The most aliases of a document. Each may expand to a large part of it, so nested aliases grow exponentially. */
const maxAliases = 100;
/** The size limit of a document with expanded aliases, in characters of JSON. */
const maxJson = 2 * 1024 * 1024;
/** The deepest nesting of lists and maps. */
const maxDepth = 50;

/** Reads a YAML document, or JSON, as the JSON of plain data, without custom tags, dates and binaries, in the version of its format. */
export function readYaml(source: string, format: ImportFormat): TaskResult {
  const lines = new LineCounter();
  const fault = (sentence: string, offset?: number): TaskResult => {
    const { line, col } = offset === undefined ? { line: null, col: null } : lines.linePos(offset);
    return { fault: sentence, line, column: col };
  };
  try {
    const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, ...yamlOptions(format) });
    const [error] = document.errors;
    if (error !== undefined) return fault(sentenceOf(error), error.pos[0]);
    const [warning] = document.warnings;
    if (warning !== undefined) return fault(sentenceOf(warning), warning.pos[0]);
    let aliases = 0;
    let refused: TaskResult | undefined;
    visit(document, {
      Alias(_key, node, path) {
        aliases += 1;
        const isCircular = path.some((outer) => isNode(outer) && (outer as { anchor?: string }).anchor === node.source);
        if (aliases <= maxAliases && !isCircular) return undefined;
        const why = isCircular ? `The alias *${node.source} is part of what it stands for.` : `There are more than ${maxAliases} aliases.`;
        refused = fault(why, node.range?.[0]);
        return visit.BREAK;
      },
      Collection(_key, node, path) {
        if (path.filter(isCollection).length >= maxDepth) {
          refused = fault(tooDeep, node.range?.[0]);
          return visit.BREAK;
        }
        return undefined;
      },
    });
    if (refused !== undefined) return refused;
    const text = JSON.stringify(document.toJS({ maxAliasCount: maxAliases })) ?? 'null';
    return text.length > maxJson ? fault(tooLarge) : { text };
  } catch (error) {
    if (error instanceof RangeError) return fault(tooDeep);
    if (error instanceof ReferenceError) return fault(tooLarge);
    throw error;
  }
}

const tooLarge = 'The document grows too large when its aliases are expanded.';
const tooDeep = `Lists and maps are nested more than ${maxDepth} levels deep.`;

function sentenceOf({ code, message }: { code: string; message: string }): string {
  if (code === 'MULTIPLE_DOCS') return 'There is more than one document.';
  if (/^Maximum call stack/.test(message)) return tooDeep;
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
