import type { Draft, Section } from '../section.ts';

/** Fields that the service adds to a chain. They are removed, so that a response can be imported. */
const added = ['id', 'version', 'created_at', 'updated_at', 'warnings'];

/** Reads our own format: a create request or a chain from a response. Unknown fields are left to the validation of the request. */
export function importBaton(file: Section): Draft {
  for (const name of added) if (name in file.fields) file.leaveOut(name, 'the service sets it');
  return Object.fromEntries(Object.entries(file.fields).filter(([name]) => !added.includes(name)));
}
