import type { WarningList } from '../warning-list.ts';
import { objectAt, type Shape } from './shape.ts';

/** Fields that the service adds to a chain. They are removed, so that a response can be imported. */
const added = ['id', 'version', 'created_at', 'updated_at', 'warnings'];

/** Reads our own format: a create request or a chain from a response. Unknown fields are left to the validation of the request. */
export function readOwn(value: unknown, findings: WarningList): Shape {
  const file = objectAt(value, 'content');
  for (const name of added) {
    if (name in file) findings.add('left_out', name, `${name} is not imported, because the service sets it.`);
  }
  return Object.fromEntries(Object.entries(file).filter(([name]) => !added.includes(name)));
}
