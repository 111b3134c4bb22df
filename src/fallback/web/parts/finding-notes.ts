import type { Finding } from '../../model/finding.ts';
import { saidOf } from './said.ts';

/** Findings as notes: each sentence once, with the line of the file if it is known. */
export function findingNotes(findings: readonly Finding[]): { detail: string }[] {
  const details = findings.map(({ line, detail }) => (line === null ? detail : `Line ${line}: ${detail}`));
  return saidOf([...new Set(details)].map((detail) => ({ detail })));
}
