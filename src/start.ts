import { serveHandoff } from './handoff/serve.ts';
import { readStartFlags } from './start-flags.ts';
import { unknownVariables } from './variables.ts';

// What `npm start` runs: every service of this package, on embedded storage unless the settings say otherwise.
const { host, handoffPort } = readStartFlags(process.argv.slice(2));
const warning = unknownVariables(process.env);
if (warning !== undefined) console.error(`warning: ${warning}`);
await serveHandoff({ ...(host === undefined ? {} : { host }), ...(handoffPort === undefined ? {} : { port: handoffPort }) }, process.env);
