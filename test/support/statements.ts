import type { TestContext } from 'node:test';
import pg from 'pg';

/** A statement and its values. */
interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The statements with a text in them that the process sends to PostgreSQL from now on. */
export function recordStatements(t: TestContext, part: string): Statement[] {
  const statements: Statement[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    const [first, values] = given as [Statement | string, Statement['values']];
    const statement = typeof first === 'string' ? { text: first, values } : first;
    if (statement.text?.includes(part)) statements.push(statement);
    return Reflect.apply(query, this, given);
  } as typeof query;
  t.after(() => {
    pg.Client.prototype.query = query;
  });
  return statements;
}

/** How many pages a statement reads. */
export async function pagesOf(client: pg.Client, { text, values }: Statement): Promise<number> {
  await client.query('begin; set local enable_sort = off');
  const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
  await client.query('rollback');
  return rows[0]['QUERY PLAN'][0].Plan['Shared Hit Blocks'];
}
