import { generatedDocuments } from './documents.ts';
import { writeGenerated } from './generated.ts';

// Writes the documents that repeat what the code says: `node scripts/docs.ts`, or with --check only compares.
writeGenerated(await generatedDocuments(), 'node scripts/docs.ts');
