import type { Finding } from '../../model/finding.ts';
import { labelledNotes } from './labels.ts';

/** Findings as notes: each sentence once, with the line of the file if it is known. */
export function findingNotes(findings: readonly Finding[]): { detail: string }[] {
  const details = findings.map(({ line, detail }) => (line === null ? detail : `Line ${line}: ${detail}`));
  return labelledNotes([...new Set(details)].map((detail) => ({ detail })));
}
