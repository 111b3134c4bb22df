import { variables as ofFallback } from '../fallback/settings.ts';
import { clientVariables } from '../handoff/cli/variables.ts';
import { variables as ofHandoff } from '../handoff/settings.ts';
import { nearest } from '../kit/settings.ts';

/** Variables that the programs read besides their settings. */
const others = ['SERVICE_CONFIG', ...Object.keys(clientVariables)];

const prefix = 'SERVICE_';

/** Every `SERVICE_*` variable that a program of this package reads. */
export const knownVariables: readonly string[] = [...new Set([...ofHandoff, ...ofFallback, ...others])];

/** A sentence about `SERVICE_*` variables that no program of this package reads, each with the known name that is near, if one is; undefined: none. */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const unknown = Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !knownVariables.includes(name))
    .sort();
  if (unknown.length === 0) return undefined;
  // Their common beginning would make every name near to a short one.
  const ends = knownVariables.map((name) => name.slice(prefix.length));
  const list = unknown.map((name) => {
    const near = nearest(name.slice(prefix.length), ends);
    return near === undefined ? name : `${name} (the nearest known name is ${prefix}${near})`;
  });
  return `not read, because no setting has this name: ${list.join(', ')}`;
}
