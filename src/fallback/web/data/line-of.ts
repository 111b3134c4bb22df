/** The line of a file, from 1, at which the field with this dotted path is, or what contains it; undefined if nothing fits. JSON is YAML, too. */
export async function lineOf(text: string, field: string): Promise<number | undefined> {
  const { isNode, LineCounter, parseDocument } = await import('yaml');
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, logLevel: 'silent' });
  if (document.errors.length > 0) return undefined;
  const path = field.split('.').map((name) => (/^\d+$/.test(name) ? Number(name) : name));
  for (; path.length > 0; path.pop()) {
    const found: unknown = document.getIn(path, true);
    if (isNode(found) && found.range) return lineCounter.linePos(found.range[0]).line;
  }
  return undefined;
}
