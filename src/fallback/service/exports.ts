import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Chain, ChainDefinition, ChainRequest } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import type { Export, Imported, ImportPreview, preferences, TemplateOutput, TemplateRequest } from '../model/export.ts';
import type { Finding } from '../model/finding.ts';
import type { ExportFormat } from '../model/targets.ts';
import { define, definitionOf } from '../rules/chain.ts';
import { routingOf } from '../rules/routing.ts';
import { exportChain } from '../rules/targets/export.ts';
import { exportForRehearsal, requireRehearsalFormat } from '../rules/targets/rehearsal.ts';
import { namedTemplates, templateChain } from '../rules/templates.ts';
import { warningsOf } from '../rules/warnings.ts';
import type { ChainService } from './chains.ts';
import type { ImportedFile } from './file-reader.ts';
import { maxTemplateBytes } from './liquid.ts';
import { fakeBase, type RehearsalTokens } from './rehearsal-tokens.ts';
import type { TextSandbox } from './sandbox.ts';

interface ExportServiceDependencies {
  chains: Pick<ChainService, 'get' | 'create' | 'analysis'>;
  sandbox: TextSandbox;
  tokens: Pick<RehearsalTokens, 'of'>;
  /** Validates an imported chain like a create request. @throws ServiceError 400 with all faults */
  checkRequest: (value: unknown) => ChainRequest;
}

/** The operations for exports, templates and imports. */
export function createExportService({ chains, sandbox, tokens, checkRequest }: ExportServiceDependencies) {
  /** The chain request of a file, validated, and its findings. */
  async function read(file: ImportedFile, owner: string): Promise<{ request: ChainRequest; findings: readonly Finding[] }> {
    const { request, findings } = await sandbox.readFile(file, 'content', owner);
    return { request: checkRequest(request), findings };
  }

  return {
    /** Exports a chain. @throws ServiceError 404 for an unknown chain */
    async export(id: string, format: ExportFormat, prefer: (typeof preferences)[number]): Promise<Export> {
      const { engine, routing } = await chains.analysis(id);
      return exportChain(format, { chain: engine.chain, routing, prefer });
    },

    /**
     * Exports a chain whose addresses lead to its fake providers at `origin`.
     * @throws ServiceError 404 for an unknown chain, 400 for a format without addresses
     */
    async exportForRehearsal(
      id: string,
      format: ExportFormat,
      options: { prefer: (typeof preferences)[number]; keepState: boolean },
      origin: string,
    ): Promise<Export> {
      const chain = definitionOf(await chains.get(id));
      const base = fakeBase(origin, await tokens.of(id));
      return exportForRehearsal(requireRehearsalFormat(format), { chain, ...options }, base);
    },

    /** Renders a template. @throws ServiceError 400 with line and column for an invalid template, 404 for an unknown chain */
    async render(request: TemplateRequest, owner: string): Promise<TemplateOutput> {
      const { template, content_type, field } = templateOf(request);
      const chain = await chainOf(request, chains);
      const definition = definitionOf(chain);
      const variables = request.variables ?? {};
      if (Object.hasOwn(variables, 'chain'))
        throw invalid('variables.chain', 'variables.chain would hide the chain itself; rename that variable.');
      const scope = { ...variables, chain: templateChain(chain, routingOf(definition)) };
      const output = await sandbox.render(template, scope, field, owner);
      return { output, content_type, warnings: warningsFor(request, definition) };
    },

    /**
     * Creates a chain from a file; returns it with findings about what was left out or interpreted differently.
     * @throws ServiceError 400 for an invalid file, with line and column or the field
     */
    async import(file: ImportedFile, owner: string): Promise<Imported> {
      const { request, findings } = await read(file, owner);
      const { text } = await chains.create(request, findings);
      return { chain: readJson(text) as Chain, findings: [...findings] };
    },

    /** What an import would store. Refuses what `import` would refuse. */
    async preview(file: ImportedFile, owner: string): Promise<ImportPreview> {
      const { request, findings } = await read(file, owner);
      const chain = define(request);
      return { chain, findings: [...findings], warnings: warningsOf(chain) };
    },

    stop: () => sandbox.stop(),
  };
}

export type ExportService = ReturnType<typeof createExportService>;

async function chainOf({ chain_id, chain }: TemplateRequest, chains: ExportServiceDependencies['chains']): Promise<ChainDefinition> {
  if (isGiven(chain_id) && isGiven(chain)) throw invalid('chain', 'Only one of chain_id and chain may be given.');
  if (isGiven(chain_id)) return chains.get(chain_id);
  if (isGiven(chain)) return define(chain);
  throw invalid('chain_id', 'chain_id or chain is required.');
}

function templateOf({ template, template_name }: TemplateRequest): { template: string; content_type: string; field: string } {
  if (isGiven(template) && isGiven(template_name)) throw invalid('template_name', 'Only one of template and template_name may be given.');
  if (isGiven(template_name)) return { ...namedTemplates[template_name], field: 'template_name' };
  if (!isGiven(template)) throw invalid('template', 'template or template_name is required.');
  if (Buffer.byteLength(template) > maxTemplateBytes) throw invalid('template', `template can have at most ${maxTemplateBytes} bytes.`);
  return { template, content_type: 'text/plain; charset=utf-8', field: 'template' };
}

const isGiven = <T>(value: T): value is NonNullable<T> => value !== null && value !== undefined;

/** Warnings about providers without a key variable, which the built-in templates leave out. */
function warningsFor({ template_name }: TemplateRequest, { providers }: ChainDefinition): Warning[] {
  return providers.flatMap(({ name, api_key_env }, index) => {
    if (!isGiven(template_name) || api_key_env !== null) return [];
    const detail = `${name} has no api_key_env, so it is called without a key.`;
    return [{ code: 'no_key', field: `providers.${index}.api_key_env`, detail, loss: false }];
  });
}
