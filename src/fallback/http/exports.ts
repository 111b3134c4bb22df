import { type Fault, invalid } from '../../kit/errors.ts';
import { entityTagOf } from '../../kit/etag.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import { bodyValidator } from '../../kit/http/validate.ts';
import { ChainRequest } from '../model/chain.ts';
import { type Export, type Imported, type ImportPreview, ImportRequest } from '../model/export.ts';
import { faultsOf } from '../rules/chain.ts';
import type { ExportService } from '../service/exports.ts';
import { handlersOf } from './handlers.ts';

interface ExportHandlersDependencies {
  exports: ExportService;
  /** The origin at which gateways reach the service; undefined for that of each request. */
  publicUrl: string | undefined;
}

/** The handlers of the routes of exports, templates and imports. */
export const exportHandlers = ({ exports, publicUrl }: ExportHandlersDependencies) =>
  handlersOf({
    exportChain: async ({ params, query: { format, raw, prefer, rehearsal, ...ofRehearsal } }, { origin }) => {
      const { rehearsal_base, keep_state: keepState = false } = ofRehearsal;
      for (const [name, value] of Object.entries(ofRehearsal))
        if (!rehearsal && value !== undefined) throw invalid(name, `${name} is only for rehearsal=true.`);
      if (rehearsal_base !== undefined && !URL.canParse(rehearsal_base)) throw invalid('rehearsal_base', 'rehearsal_base must be a URL.');
      const made = rehearsal
        ? await exports.exportForRehearsal(params.id, format, { prefer, keepState }, rehearsal_base ?? publicUrl ?? origin)
        : await exports.export(params.id, format, prefer);
      if (!raw) return made;
      const headers = {
        'content-type': `${made.content_type}; charset=utf-8`,
        'content-disposition': `attachment; filename="${made.filename}"`,
        'x-content-type-options': 'nosniff',
      };
      return new HttpResponse<Export>({ headers, body: new JsonText(made.content) });
    },

    exportTemplate: { handle: ({ body }, { caller }) => exports.render(body, caller.id), bodyFaults: templateFaults },

    importChain: async ({ query: { dry_run, ...query }, body }, { caller }) => {
      const file = { ...query, ...fileOf(body) };
      if (dry_run) return new HttpResponse<ImportPreview | Imported>({ status: 200, body: await exports.preview(file, caller.id) });
      const imported = await exports.import(file, caller.id);
      const { id, version } = imported.chain;
      return new HttpResponse<ImportPreview | Imported>({
        status: 201,
        headers: { location: `/chains/${id}`, etag: entityTagOf(version) },
        body: imported,
      });
    },
  });

const wrapped = bodyValidator(ImportRequest);
const chainRequest = bodyValidator(ChainRequest, { name: 'The chain', faultsOf });

/** Validates an imported chain like a create request. @throws ServiceError 400 with all faults */
export const checkChainRequest = (value: unknown): ChainRequest => chainRequest(value) as ChainRequest;

/** The faults of a template request's chain beyond its schema. */
function templateFaults(body: unknown): Fault[] {
  const { chain } = typeof body === 'object' && body !== null ? (body as { chain?: unknown }) : {};
  return faultsOf(chain).map(({ field, detail }) => ({ field: `chain.${field}`, detail: `chain.${detail}` }));
}

/** The file to import: the body itself, or its `content`. */
function fileOf(body: unknown): { content: unknown; name?: string | undefined } {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'content')) return { content: body };
  const { content, name } = wrapped(body) as ImportRequest;
  return { content, name: name ?? undefined };
}
