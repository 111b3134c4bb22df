import { ServiceError } from '../../../kit/errors.ts';
import type { ChainDefinition, ChainRequest } from '../../model/chain.ts';
import type { Export } from '../../model/export.ts';
import { type ExportFormat, type ImportFormat, importFormats, type Target, targets } from '../../model/targets.ts';
import { define } from '../chain.ts';
import { WarningList } from '../warning-list.ts';
import { listed, shortened } from '../wording.ts';
import type { RehearsedGateway } from './gateway.ts';
import { importChain } from './import.ts';
import { exporters, gateways } from './table.ts';
import { type ExportInput, exportedProviders, slug } from './target.ts';
import { yamlText } from './yaml.ts';

/** The text of a configuration, by media type. */
const writers: Readonly<Record<Target['contentType'], (config: unknown) => string>> = {
  'application/json': (config) => `${JSON.stringify(config, null, 2)}\n`,
  'application/yaml': (config) => [config].flat().map(yamlText).join('---\n'),
  'text/javascript': String,
};

/** Exports a chain, with a warning for everything that the format can't express; it never fails for that reason. */
export function exportChain(format: ExportFormat, input: ExportInput): Export {
  const { chain } = input;
  const warnings = new WarningList();
  const { ending, contentType } = targets[format];
  const config = exporters[format]({ ...input, warnings, providers: exportedProviders(input, warnings) });
  for (const { detail } of gatewayFor(format)?.ofStreams?.(chain) ?? []) warnings.add('streams', null, detail);
  const back = readBack(format, config, chain);
  if (back !== null && back.length > 0) {
    const fields = listed(shortened(back, 5, 'other field'));
    warnings.loss('import_differs', null, `Importing this file gives a chain that differs in ${fields}.`);
  }
  const lossless = !warnings.hasLoss;
  const filename = `${slug(chain.name)}.${ending}`;
  return { format, filename, content_type: contentType, config, content: writers[contentType](config), lossless, warnings: warnings.items };
}

/** Whether a format is lossless for a chain: an import gives the same chain, and the target behaves like it. */
export const isLossless = (format: ExportFormat, input: ExportInput): boolean => exportChain(format, input).lossless;

/** The paths of fields that an import of the export would change; null for a format that can't be imported. */
function readBack(format: ExportFormat, config: unknown, chain: ChainDefinition): string[] | null {
  if (!isImportable(format)) return null;
  try {
    // Not every format has the name of the chain.
    const { request } = importChain({ format, value: config, name: chain.name });
    return differences(chain, define(request as ChainRequest));
  } catch (error) {
    // An export that can't be imported again is still useful.
    if (error instanceof ServiceError) return [error.field ?? 'chain'];
    throw error;
  }
}

/** The dotted paths at which two JSON values differ. */
function differences(one: unknown, other: unknown, path = ''): string[] {
  if (isContainer(one) && isContainer(other) && Array.isArray(one) === Array.isArray(other)) {
    const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return names.flatMap((name) => differences(one[name], other[name], path === '' ? name : `${path}.${name}`));
  }
  return Object.is(one, other) ? [] : [path];
}

/** How the gateway of a format is rehearsed; undefined for a format of no gateway. */
export const gatewayFor = (format: ExportFormat): RehearsedGateway | undefined =>
  (gateways as Partial<Record<ExportFormat, RehearsedGateway>>)[format];

const isImportable = (format: ExportFormat): format is ImportFormat => (importFormats as readonly string[]).includes(format);
const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
