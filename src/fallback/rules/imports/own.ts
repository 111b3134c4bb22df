import { type Findings, objectAt, type Shape } from './shape.ts';

/** What the service adds to a chain: taken off again, so that an answer can be imported as it came. */
const added = ['id', 'version', 'created_at', 'updated_at', 'warnings'];

/** A file of our own: the body of a create request, or a chain as the service shows it. Unknown fields are for the check of the request. */
export function readOwn(value: unknown, findings: Findings): Shape {
  const file = objectAt(value, 'content');
  for (const name of added) {
    if (name in file) findings.add('left_out', name, `${name} is set by the service and is left out.`);
  }
  return Object.fromEntries(Object.entries(file).filter(([name]) => !added.includes(name)));
}
