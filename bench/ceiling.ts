import { DatabaseSync, type StatementSync } from 'node:sqlite';
import fastify from 'fastify';
import { CreateRequest } from '../src/handoff/model/packet.ts';
import { bodyValidator } from '../src/kit/http/validate.ts';
import { serveTasks } from './programs.ts';

/**
 * The framework without the product, as the reference for its speed: a POST whose body is validated by the same schema and
 * echoed, a GET that answers given bytes, and one that runs the bare full-text query.
 */
const app = fastify({ logger: false });

// The product's own validator, so that both accept the same bodies at the same cost.
const validate = bodyValidator(CreateRequest, { nullIsAbsent: true });
app.setValidatorCompiler(() => (body) => validate(body) !== undefined);

let bytes = '';
app.post('/echo', { schema: { body: CreateRequest } }, (request, reply) => reply.send(request.body));
app.get('/bytes', (_request, reply) => reply.type('application/json; charset=utf-8').send(bytes));

let match: StatementSync | undefined;
app.get('/match', (request, reply) => {
  const { q, limit } = request.query as { q: string; limit: string };
  return reply.send(match!.all(q, Number(limit)));
});

const tasks = {
  async start(_: null): Promise<string> {
    return app.listen({ host: '127.0.0.1', port: 0 });
  },
  answerWith(text: string): void {
    bytes = text;
  },
  /** Opens a database file of the product for its search index. */
  openIndex(path: string): void {
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec('pragma cache_size = -32768');
    match = database.prepare('select rowid from search_index where search_index match ? order by rank limit ?');
  },
};

/** The tasks of the ceiling. */
export type CeilingTasks = typeof tasks;

serveTasks(tasks);
