import { ServiceError } from '../../../kit/errors.ts';
import type { ChainDefinition, ChainRequest } from '../../model/chain.ts';
import { type Export, type ExportFormat, type ImportFormat, importFormats } from '../../model/export.ts';
import type { Routing } from '../../model/routing.ts';
import { define } from '../chain.ts';
import { importChain } from '../imports/import.ts';
import { WarningList } from '../warning-list.ts';
import { listed, plural } from '../wording.ts';
import { aiSdk } from './ai-sdk.ts';
import { bifrost } from './bifrost.ts';
import { envoyAiGateway } from './envoy.ts';
import { langchain } from './langchain.ts';
import { litellm } from './litellm.ts';
import { openrouter } from './openrouter.ts';
import { json, yaml } from './own.ts';
import { portkey } from './portkey.ts';
import type { Exporter, Source } from './target.ts';

const exporters: Readonly<Record<ExportFormat, Exporter>> = {
  litellm,
  portkey,
  openrouter,
  langchain,
  'ai-sdk': aiSdk,
  bifrost,
  'envoy-ai-gateway': envoyAiGateway,
  json,
  yaml,
};

/** Exports a chain, with a warning for everything that the format can't express; it never fails for that reason. */
export function exportChain(format: ExportFormat, source: Source): Export {
  const warnings = new WarningList();
  const { filename, content_type, config, content } = exporters[format](source, warnings);
  const back = readBack(format, config, source.chain);
  if (back !== null && back.length > 0) {
    warnings.loss('import_differs', null, `Importing this file gives a chain that differs in ${listed(named(back))}.`);
  }
  return { format, filename, content_type, config, content, lossless: back !== null && !warnings.hasLoss, warnings: warnings.items };
}

/** The most fields that one sentence names. */
const maxNamed = 5;

function named(fields: readonly string[]): readonly string[] {
  if (fields.length <= maxNamed) return fields;
  return [...fields.slice(0, maxNamed - 1), plural(fields.length - maxNamed + 1, 'other field')];
}

/** The formats that are lossless for a chain: an import gives the same chain, and the target behaves like it. */
export function losslessFormats(chain: ChainDefinition, routing: Routing): ImportFormat[] {
  return importFormats.filter((format) => exportChain(format, { chain, routing, prefer: 'failover' }).lossless);
}

/** The paths of fields that an import of the export would change; null for a format that can't be imported. */
function readBack(format: ExportFormat, config: unknown, chain: ChainDefinition): string[] | null {
  if (!isImportable(format)) return null;
  try {
    const { request } = importChain({ format, value: config, name: format === 'portkey' ? chain.name : undefined });
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

const isImportable = (format: ExportFormat): format is ImportFormat => (importFormats as readonly string[]).includes(format);
const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
