import { serveFallback } from '../fallback/serve.ts';
import { serveHandoff } from '../handoff/serve.ts';
import { readJson } from '../kit/json.ts';

// One service of `npm start`, in a process that start.ts created. Arguments: its name, and the flags of its `serve` as JSON.
const [name, flags = '{}'] = process.argv.slice(2);
if (name === 'handoff') await serveHandoff(readJson(flags), process.env);
else await serveFallback(readJson(flags), process.env, '--fallback-port');
process.send?.('listening');
