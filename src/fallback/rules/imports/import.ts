import type { ImportFormat } from '../../model/export.ts';
import type { ExportWarning } from '../exports/target.ts';
import { readLitellm } from './litellm.ts';
import { readOwn } from './own.ts';
import { readPortkey } from './portkey.ts';
import { Findings } from './shape.ts';

/** What a file says: the request for a chain, still to be checked like any other, and what was left out or read differently. */
export interface ImportedRequest {
  request: unknown;
  findings: ExportWarning[];
}

const readers = { litellm: readLitellm, portkey: readPortkey, json: readOwn, yaml: readOwn } as const;

/**
 * The request for a chain that a file of another program, already parsed, amounts to. Pure.
 * @param name what the chain is to be called; without it the file's own name, or `imported-<format>`
 * @throws ServiceError 400 with the file's field where its shape is wrong
 */
export function importChain(format: ImportFormat, value: unknown, name?: string): ImportedRequest {
  const findings = new Findings();
  const request = readers[format](value, findings);
  return { request: { ...request, name: name ?? request.name ?? `imported-${format}` }, findings: findings.list };
}
