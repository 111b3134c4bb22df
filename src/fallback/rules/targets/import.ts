import { invalid } from '../../../kit/errors.ts';
import { maxRules } from '../../model/chain.ts';
import type { Finding } from '../../model/finding.ts';
import { type ImportFormat, importFormats, measuredOf, targets } from '../../model/targets.ts';
import { FindingList } from '../finding-list.ts';
import { listed } from '../wording.ts';
import { Section } from './section.ts';
import { importers } from './table.ts';

const grouped = importFormats.filter((format) => targets[format].hasGroups);

/** A parsed file to import. */
export interface FileToImport {
  readonly format: ImportFormat;
  readonly value: unknown;
  /** The name of the chain; by default the name in the file, or `imported-<format>`. */
  readonly name?: string | undefined;
  /** The model group at which the chain starts, for a format that has groups. */
  readonly group?: string | undefined;
}

/**
 * Converts the parsed file of another program to a chain request, not validated yet, with findings about what was left
 * out or interpreted differently. Pure.
 * @throws ServiceError 400 with the invalid field of the file
 */
export function importChain({ format, value, name, group }: FileToImport): { request: unknown; findings: Finding[] } {
  if (group !== undefined && !targets[format].hasGroups) throw invalid('group', `group is only for the format ${listed(grouped)}.`);
  const findings = new FindingList(measuredOf(format));
  const file = new Section(value, '', findings);
  refuseOtherFile(file);
  const request = importers[format](file, group);
  const rules = Array.isArray(request.fallback_rules) ? request.fallback_rules.length : 0;
  const tooMany = `The file treats its failures in so many ways that a chain needs ${rules} rules for it, and can have at most ${maxRules}; ${
    targets[format].hasGroups ? 'name a group with fewer models, or split the file.' : 'split it.'
  }`;
  if (rules > maxRules && format !== 'json' && format !== 'yaml') throw invalid('content', tooMany);
  return { request: { ...request, name: name ?? request.name ?? `imported-${format}` }, findings: findings.items };
}

/** @throws ServiceError 400 for a file that contains a configuration, or names the file of one */
function refuseOtherFile({ fields }: Section): void {
  if (['model_list', 'targets', 'providers'].some((name) => fields[name] !== undefined)) return;
  if (fields.kind === 'ConfigMap')
    throw invalid('data', 'The file is a ConfigMap of Kubernetes; give the text of the entry of its data that has the configuration.');
  if (fields.services !== undefined)
    throw invalid('services', 'The file is a compose file; give the configuration that its service mounts.');
}
