import { readFileSync } from 'node:fs';

import { writeGenerated } from './generated.ts';

// Removes `engines` of optional packages from package-lock.json: `node scripts/lock-file.ts`. With --check it only compares. npm leaves
// out an optional package whose `engines` exclude the machine's Node, although what needs it runs on the pinned one: with Node 20.18,
// vite would have no native part.

interface Package {
  readonly optional?: boolean;
  engines?: unknown;
}

const path = 'package-lock.json';
const lock: { packages: Record<string, Package> } = JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
for (const entry of Object.values(lock.packages)) if (entry.optional === true) delete entry.engines;
writeGenerated({ [path]: `${JSON.stringify(lock, null, 2)}\n` }, 'node scripts/lock-file.ts');
