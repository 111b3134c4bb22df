import { isNode, LineCounter, parseDocument } from 'yaml';

/** The lines, from 1, of the fields with these dotted paths in YAML or JSON, or of what contains them; null if nothing fits. */
export function linesOf(source: string, fields: readonly string[]): (number | null)[] {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, schema: 'core', merge: true, logLevel: 'silent' });
  return fields.map((field) => {
    const path = field.split('.').map((name) => (/^\d+$/.test(name) ? Number(name) : name));
    for (; path.length > 0; path.pop()) {
      const found: unknown = document.getIn(path, true);
      if (isNode(found) && found.range) return lineCounter.linePos(found.range[0]).line;
    }
    return null;
  });
}
