import { generatedDocuments } from './documents.ts';
import { writeGenerated } from './generated.ts';

// Generates documents from the code: `node scripts/docs.ts`. With --check it only compares.
writeGenerated(await generatedDocuments(), 'node scripts/docs.ts');
