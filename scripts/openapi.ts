import packageJson from '../package.json' with { type: 'json' };
import { describeHandoff } from '../src/handoff/model/api.ts';
import { writeGenerated } from './generated.ts';

// Exports the API description of every service: `node scripts/openapi.ts`, or with --check only compares.
writeGenerated({ 'openapi/handoff.json': `${JSON.stringify(describeHandoff(packageJson.version), null, 2)}\n` }, 'node scripts/openapi.ts');
