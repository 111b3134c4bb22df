/** The dotted path of an object, array or text within a value; undefined if it is not there, or the value itself. */
export function pathOf(part: unknown, value: unknown): string | undefined {
  if (part === value || part === undefined) return undefined;
  const open: Step[] = [{ value, name: '', above: undefined }];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    if (step.value === part) return namesTo(step).join('.');
    if (typeof step.value !== 'object' || step.value === null) continue;
    for (const [name, below] of Object.entries(step.value)) open.push({ value: below, name, above: step });
  }
  return undefined;
}

interface Step {
  readonly value: unknown;
  readonly name: string;
  readonly above: Step | undefined;
}

/** The names on the way to a step. */
function namesTo(step: Step): string[] {
  const names: string[] = [];
  for (let at: Step | undefined = step; at?.above !== undefined; at = at.above) names.unshift(at.name);
  return names;
}
