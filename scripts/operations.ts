import { routes as fallbackRoutes } from '../src/fallback/model/api.ts';
import { prefixesOf as handoffPrefixesOf, routes as handoffRoutes } from '../src/handoff/model/api.ts';
import { type Operation, operationsOf } from '../src/kit/client.ts';

/** The tables of operations, by path from the project's root. Clients load them instead of the routes and schemas. */
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

/** The operations of the ${service} service, by name. */
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
