import { invalid } from '../../../kit/errors.ts';
import type { Finding } from '../../model/finding.ts';
import type { ImportFormat } from '../../model/targets.ts';
import { FindingList } from '../finding-list.ts';
import { Section } from './section.ts';
import { importers } from './table.ts';

/** A parsed file to import. */
export interface FileToImport {
  readonly format: ImportFormat;
  readonly value: unknown;
  /** The name of the chain; by default the name in the file, or `imported-<format>`. */
  readonly name?: string | undefined;
  /** The model group of a LiteLLM file at which the chain starts. */
  readonly group?: string | undefined;
}

/**
 * Converts the parsed file of another program to a chain request, not validated yet, with findings about what was left
 * out or interpreted differently. Pure.
 * @throws ServiceError 400 with the invalid field of the file
 */
export function importChain({ format, value, name, group }: FileToImport): { request: unknown; findings: Finding[] } {
  if (group !== undefined && format !== 'litellm') throw invalid('group', 'group is only for the format litellm.');
  const findings = new FindingList();
  const request = importers[format](new Section(value, '', findings), group);
  return { request: { ...request, name: name ?? request.name ?? `imported-${format}` }, findings: findings.items };
}
