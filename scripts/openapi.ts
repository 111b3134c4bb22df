import packageJson from '../package.json' with { type: 'json' };
import { describeFallback } from '../src/fallback/model/api.ts';
import { describeHandoff } from '../src/handoff/model/api.ts';
import { writeGenerated } from './generated.ts';

// Exports the API descriptions of both services: `node scripts/openapi.ts`. With --check it only compares.
writeGenerated(
  {
    'openapi/fallback.json': text(describeFallback(packageJson.version)),
    'openapi/handoff.json': text(describeHandoff(packageJson.version)),
  },
  'node scripts/openapi.ts',
);

function text(description: Record<string, unknown>): string {
  return `${JSON.stringify(description, null, 2)}\n`;
}
