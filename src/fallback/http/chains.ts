import { andThen } from '../../kit/awaitable.ts';
import { notFound } from '../../kit/errors.ts';
import { entityTagOf, isKnown } from '../../kit/etag.ts';
import { HttpResponse, JsonText, TextPieces } from '../../kit/http/response.ts';
import { faultsOf } from '../rules/chain.ts';
import type { ChainService } from '../service/chains.ts';
import type { StoredChain } from '../store/chains.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of chains. */
export const chainHandlers = (chains: ChainService) =>
  handlersOf({
    createChain: {
      handle: async ({ body }) => {
        const { id, version, text } = await chains.create(body);
        return new HttpResponse<never>({ headers: { location: `/chains/${id}`, etag: entityTagOf(version) }, body: new JsonText(text) });
      },
      bodyFaults: faultsOf,
    },
    checkChain: { handle: ({ body }) => chains.check(body), bodyFaults: faultsOf },
    listChains: async ({ query }, { headers: given }) => {
      const { count, tag } = await chains.state();
      const headers = { 'x-total-count': String(count), etag: `"${tag}"` };
      if (isKnown(given['if-none-match'], headers.etag)) return new HttpResponse<never>({ status: 304, headers });
      const pages = chains.pages(query);
      const [first, second] = [await pages.next(), await pages.next()];
      if (second.done) return new HttpResponse<never>({ headers, body: new JsonText(`[${(first.value ?? []).join(',')}]`) });
      return new HttpResponse<never>({ headers, body: new TextPieces(arrayOf([first.value!, second.value], pages)) });
    },
    getChain: ({ params }, { headers }) => {
      // The most frequent read: with a synchronous store the answer needs no promise either.
      const finding = chains.find(params.id);
      return andThen(finding, (found) => chainAnswer(found, headers['if-none-match']));
    },
    patchChain: async ({ params, body }, { headers }) => chainAnswer(await chains.patch(params.id, body, headers['if-match']), undefined),
    deleteChain: ({ params }, { headers }) => chains.remove(params.id, headers['if-match']),
    getFindings: ({ params }) => chains.findings(params.id),
    getRouting: ({ params, query }) => chains.routing(params.id, query),
  });

/** A JSON array, in pieces: the pages that are already read, then the others, each read when the one before is sent. */
async function* arrayOf(read: readonly string[][], others: AsyncIterable<string[]>): AsyncGenerator<string, void> {
  let separator = '[';
  const piece = (texts: readonly string[]) => {
    const text = `${separator}${texts.join(',')}`;
    separator = ',';
    return text;
  };
  for (const texts of read) yield piece(texts);
  for await (const texts of others) yield piece(texts);
  yield ']';
}

function chainAnswer(found: StoredChain | undefined, noneMatch: string | undefined): HttpResponse<never> {
  if (found === undefined) throw notFound('chain');
  const etag = entityTagOf(found.version);
  if (isKnown(noneMatch, etag)) return new HttpResponse<never>({ status: 304, headers: { etag } });
  return new HttpResponse<never>({ headers: { etag }, body: new JsonText(found.text) });
}
