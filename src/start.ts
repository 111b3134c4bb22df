import { serveHandoff } from './handoff/serve.ts';

// What `npm start` runs: every service of this package, on embedded storage unless the settings say otherwise.
await serveHandoff({}, process.env);
