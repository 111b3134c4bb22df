import { routes as fallbackRoutes } from '../src/fallback/model/api.ts';
import { prefixesOf as handoffPrefixesOf, routes as handoffRoutes } from '../src/handoff/model/api.ts';
import { type Operation, operationsOf } from '../src/kit/client.ts';

/** The tables of operations that the clients load instead of the routes with their schemas, by their paths from the project's root. */
export function generatedOperations(): Record<string, string> {
  return {
    'src/fallback/client/operations.ts': tableOf(
      'fallback',
      operationsOf(fallbackRoutes, ({ path }) => path),
    ),
    'src/handoff/client/operations.ts': tableOf(
      'handoff',
      operationsOf(handoffRoutes, (route) => handoffPrefixesOf(route)[0] + route.path),
    ),
  };
}

function tableOf(service: string, operations: Record<string, Operation>): string {
  const rows = Object.entries(operations).map(([name, operation]) => `  ${name}: { ${membersOf(operation)} },`);
  return `// Written by \`node scripts/docs.ts\` from the routes; change them, not this file.

/** The operations of the ${service} service, by their names. */
export const operations = {
${rows.join('\n')}
} as const;
`;
}

function membersOf(operation: Operation): string {
  return Object.entries(operation)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? `'${value}'` : value}`)
    .join(', ');
}
