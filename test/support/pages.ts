import assert from 'node:assert/strict';

interface Page {
  readonly next_cursor: string | null;
}

/** Reads all pages until `next_cursor` is null, by a query to which `&cursor=` is added; `between` runs after each page but the last. */
export async function walk<T extends Page>(
  read: (query: string) => Promise<T>,
  query: string,
  between: () => Promise<unknown> = async () => undefined,
): Promise<T[]> {
  const pages: T[] = [await read(query)];
  for (let cursor = pages[0]!.next_cursor; cursor !== null; cursor = pages.at(-1)!.next_cursor) {
    await between();
    pages.push(await read(`${query}&cursor=${encodeURIComponent(cursor)}`));
    assert.ok(pages.length < 100, 'paging must end');
  }
  return pages;
}
