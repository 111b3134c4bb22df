import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { errors as fallbackErrors } from '../src/fallback/model/errors.ts';
import { type ExportFormat, exportFormats, targets } from '../src/fallback/model/targets.ts';
import { settingsTable as fallbackSettings } from '../src/fallback/settings.ts';
import { clientVariables } from '../src/handoff/cli/variables.ts';
import type { Status } from '../src/handoff/model/common.ts';
import { errors as handoffErrors } from '../src/handoff/model/errors.ts';
import { transitions, type Verb } from '../src/handoff/rules/packet-life.ts';
import { settingsTable as handoffSettings } from '../src/handoff/settings.ts';
import { migrations } from '../src/handoff/store/migrations/index.ts';
import { commonErrors } from '../src/kit/errors.ts';
import { fileKey, type SettingsTable } from '../src/kit/settings.ts';
import { migrate } from '../src/kit/sql/migrate.ts';
import { openSqlite } from '../src/kit/sql/sqlite.ts';
import { cliDocument } from './cli-document.ts';
import { generatedOperations } from './operations.ts';

/** All documents that are generated from the code, by path from the project's root. */
export async function generatedDocuments(): Promise<Record<string, string>> {
  return {
    'docs/settings.md': settingsDocument(),
    'docs/errors.md': errorsDocument(),
    'docs/packet-life.md': lifeDocument(),
    'docs/schema.sqlite.sql': await sqliteSchema(),
    'docs/schema.postgres.sql': postgresSchema(),
    'docs/cli.md': await cliDocument(generatedNote),
    'docs/exports.md': exportsDocument(),
    ...generatedOperations(),
  };
}

const generatedNote = '<!-- Written by `npm run fix`; change what it reads, not this file. -->';

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const code = (text: string | undefined) => (text === undefined || text === '' ? 'none' : `\`${text}\``);

/** `docs/exports.md` with its two tables of targets, each between two comments, from `model/targets.ts`. */
function exportsDocument(): string {
  const row = (format: ExportFormat, how: string) => {
    const { lacks, importedBy } = targets[format];
    return [code(format), how, lacks, importedBy === null ? 'no' : 'yes'];
  };
  const run = exportFormats.flatMap((format) => {
    const { tested } = targets[format];
    return 'run' in tested ? [row(format, tested.run)] : [];
  });
  const checked = exportFormats.flatMap((format) => {
    const { tested } = targets[format];
    return 'checked' in tested ? [row(format, tested.checked)] : [];
  });
  const text = readFileSync(new URL('../docs/exports.md', import.meta.url), 'utf8');
  return [
    ['run', table(['Target', 'Run in', "What it can't express", 'Imported'], run)],
    ['checked', table(['Target', 'Checked', "What it can't express", 'Imported'], checked)],
  ].reduce((filled, [name, rows]) => filled.replace(new RegExp(`(<!-- targets: ${name} -->\n)[^]*?(<!-- end -->)`), `$1${rows}\n$2`), text);
}

function settingsRows(settings: SettingsTable): string {
  const rows = Object.values(settings).map((setting) => [
    setting.variable === undefined ? '' : code(setting.variable),
    setting.flag === undefined ? '' : code(setting.flag),
    code(fileKey(setting)),
    code(setting.fallback),
    setting.help,
  ]);
  return table(['Variable', 'Flag', 'In the file', 'Default', 'Meaning'], rows);
}

function settingsDocument(): string {
  return `${generatedNote}
# Settings

A flag takes precedence over the environment variable, the variable over the settings file, and the file over the default. An
empty variable counts as not set. The file is TOML. In the file, a setting has the name of its variable in lower case without
\`SERVICE_\`, or the name of its flag with underscores. If a setting is invalid or the file has an unknown name, the program
prints one line for each problem and does not start.

A supervisor runs \`node_modules/.bin/node bin/service-cli.js serve\` or \`node_modules/.bin/node bin/fallback-service.js serve\`
in the project's folder, and restarts a service that exits 1: after an unexpected error the process logs it as
fatal, gives requests in progress two seconds, and ends. \`npx service-cli serve\` is for a terminal: npx does not pass SIGTERM on,
so the service would keep running. \`npm start\` passes it on. It restarts a service that ended with an error, after 1, 2, 4
and 8 seconds; when one ends five times within a minute, both end. Exit codes: 0 after SIGTERM or SIGINT, 1 for
settings or a database that can't be used and after an unexpected error, 2 for a wrong command line.

SQLite files are created with access for the service's user only (0600, new folders 0700). The service warns about existing files that others can read. When it stops,
the reader of a log that is a pipe or socket has five seconds to read the rest.

## The handoff service

\`npx service-cli serve\`. \`--config\` or \`SERVICE_CONFIG\` names the file.

${settingsRows(handoffSettings)}

## The fallback service

\`npx fallback-service serve\`. \`--config\` names the file. A flag without a value (\`--allow-live\`) means true.

${settingsRows(fallbackSettings)}

## The command line

The commands of \`service-cli\` also read these variables; [cli.md](cli.md) describes their flags and the configuration file.

${table(
  ['Variable', 'Meaning'],
  Object.entries(clientVariables).map(([name, meaning]) => [code(name), meaning]),
)}
`;
}

function errorsDocument(): string {
  const both = Object.values(commonErrors).map((error) => ({ ...error, of: 'both' }));
  const own = Object.entries({ handoff: handoffErrors, fallback: fallbackErrors }).flatMap(([of, errors]) =>
    Object.values(errors).map((error) => ({ ...error, of })),
  );
  const rows = [...both, ...own]
    .toSorted((one, other) => one.status - other.status)
    .map(({ code: name, status, meaning, of }) => [code(name), String(status), of, meaning]);
  return `${generatedNote}
# Errors

All errors have the same body, also for unknown paths:

${table(
  ['Field', 'Type', 'Meaning'],
  [
    ['`detail`', 'string', 'The error as a sentence.'],
    ['`code`', 'string', 'One of the codes below, for programs.'],
    [
      '`field`',
      'string or null',
      "The dotted path of the invalid field from the body's root (`metadata.source_agent.id`, `decisions.0.decision`), or the name of the parameter or header; null if there is none.",
    ],
    ['`status_code`', 'integer', 'The HTTP status.'],
    ['`request_id`', 'string', 'The id of the request in the log; also in the header `X-Request-Id`.'],
    ['`errors`', 'array', 'All faults as `{field, detail}`, if validation found several.'],
    [
      '`limit`',
      'object',
      'With 429, the limit that is used up: `{name, max, reset_seconds}`, where `name` is `second` (fallback service only), `minute`, `hour`, `day`, `connections` or `wrong_keys`.',
    ],
  ],
)}

A refused claim also has \`claimed_by\`: \`{agent_id, agent_name, framework, claimed_at}\` of the current holder, or null.
A batch in which every item failed also has \`created\` (empty) and \`errors\` with an entry for each item.

${table(['Code', 'Status', 'Service', 'Meaning'], rows)}

If the server can't parse a request as HTTP, it answers with the same body but without \`request_id\`, and closes the
connection: 400 for a malformed request, 408 for a request that takes too long to arrive, and 431 for headers that are too
large, each with the code \`VALIDATION_ERROR\`.
`;
}

const verbs: Record<Verb, string> = {
  claim:
    '`POST /packets/{id}/claim`, `POST /packets/claim-next`, or a batch claim; `POST /approvals`, which makes a packet that its agent holds',
  start: '`PATCH` with status `in_progress`',
  ask: '`POST /packets/{id}/questions`, or `PATCH` with status `awaiting_human`, if the packet has a question then; `POST /approvals`',
  ask_again: '`POST /packets/{id}/questions`, when the time to answer the open question is over',
  respond: '`POST /packets/{id}/respond`, or an answer link; the decision of a policy, a standing approval or a timeout about an action',
  withdraw: '`DELETE /packets/{id}/question`, if an agent holds the packet',
  reopen: '`DELETE /packets/{id}/question`, if nobody holds the packet',
  complete:
    '`PATCH` with status `completed`, or a batch complete; refused while a required answer is missing. A packet of `POST /approvals`: the end of the execution, or a decision that approves nothing',
  fail: '`PATCH` with status `failed`',
  expire:
    '`PATCH` with status `expired`. A packet of `POST /approvals`: the end of the time in which its approval is valid, if no execution has begun',
  release: '`POST /packets/{id}/release`, or `DELETE /packets/{id}/lease`',
  lose: 'the expiry of a lease',
  time_out: 'the expiry of unclaimed packets',
  time_out_fail: 'the timeout of a question with `on_timeout` `fail`',
  time_out_expire: 'the timeout of a question with `on_timeout` `expire`',
  delete: '`DELETE /packets/{id}`, the only operation that changes the status of a `completed` packet',
  erase: '`POST /erasures`. It and retention also erase packets that have ended, which keep their status',
};

function lifeDocument(): string {
  const names = Object.keys(verbs) as Verb[];
  const states = Object.entries<Partial<Record<Verb, Status>>>(transitions);
  const rows = states.map(([from, ways]) => [code(from), ...names.map((verb) => (ways[verb] === undefined ? '' : code(ways[verb])))]);
  const arrows = states.flatMap(([from, ways]) => Object.entries(ways).map(([verb, to]) => `  ${from} --> ${to} : ${verb}`));
  return `${generatedNote}
# The life of a packet

A new packet has the status \`created\`. In each status (row) a verb (column) leads to the status in the cell. If the cell
is empty, the verb is refused and nothing changes.

${table(['From', ...names], rows)}

${table(
  ['Verb', 'Comes from'],
  Object.entries(verbs).map(([verb, source]) => [verb, source]),
)}

With \`DELETE /packets/{id}?hard=true\` an admin key deletes a packet permanently, in every status.

\`\`\`mermaid
stateDiagram-v2
  [*] --> created
${arrows.join('\n')}
\`\`\`
`;
}

/** A statement with the indentation of the source reduced to two spaces. */
const reindented = (statement: string) => `${statement.replace(/\n\s+/g, '\n  ')};\n`;

async function sqliteSchema(): Promise<string> {
  const database = openSqlite<{ sqlite_schema: { sql: string } }>('sqlite::memory:');
  await migrate(database, migrations, () => new Date(0));
  // Excludes tables of SQLite itself and of the full-text index.
  const { rows } = await sql<{ sql: string }>`
    select sql from sqlite_schema where sql is not null and name not like 'sqlite\\_%' escape '\\'
    and name not like 'search\\_index\\_%' escape '\\' order by rowid`.execute(database.reads);
  await database.close();
  return `-- Written by \`npm run fix\` from a database it has migrated. The service creates this schema itself.\n\n${rows.map((row) => reindented(row.sql)).join('\n')}`;
}

function postgresSchema(): string {
  const steps = migrations.map(({ name, up }) => `-- ${name}\n\n${up('postgres').map(reindented).join('\n')}`);
  return `-- Written by \`npm run fix\` from the migrations. The service creates this schema itself,\n-- and the table migrations (name, applied_at) with the applied migrations.\n\n${steps.join('\n')}`;
}
