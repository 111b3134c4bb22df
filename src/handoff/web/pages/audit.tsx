import { Download } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'react-router';
import { isId } from '../../../kit/uuid.ts';
import { Load } from '../../../kit/web/app/load.tsx';
import { useDebounced } from '../../../kit/web/app/queries.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { TextField } from '../../../kit/web/components/field.tsx';
import { Fields } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Pager, Table } from '../../../kit/web/components/table.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { download } from '../../../kit/web/download.ts';
import { count, cut, moment, words } from '../../../kit/web/format.ts';
import type { AuditEntry } from '../../model/audit.ts';
import { csvOf, jsonLinesOf } from '../../rules/audit-file.ts';
import { filtersIn, isTime, useFilters } from '../data/filters.ts';
import { exportAudit, readAudit, rowsPerPage, useAudit, useKeyNames, useMay } from '../data/queries.ts';
import { detailText } from '../parts/question.tsx';
import { Long } from '../parts/texts.tsx';

/** The most entries of a download. */
const maxEntries = 10_000;

const fields = {
  actor: 'Actor',
  action: 'Action',
  packet_id: 'Packet (id)',
  key_id: 'Key (id)',
  person: 'Signed-in person',
  subject: 'Data of (id)',
  created_after: 'After',
  created_before: 'Before',
} as const;
const names = Object.keys(fields) as (keyof typeof fields)[];

/** The audit log of the tenant, with filters and download. */
export function Audit() {
  useTitle('Audit');
  const { params, set } = useFilters();
  const [page, setPage] = useState(0);
  const { action, ...others } = filtersIn(new URLSearchParams(useDebounced(params.toString(), 250)), names);
  // The action may be entered as the table shows it, with spaces, or as the API names it.
  const filters = { ...others, ...(action === undefined ? {} : { action: action.trim().replaceAll(' ', '_') }) };
  const audit = useAudit(filters, page);
  return (
    <>
      <PageHeader title="Audit" actions={<Downloads filters={filters} />} />
      <Fields min="13rem">
        {names.map((name) => (
          <TextField
            key={name}
            label={fields[name]}
            type={isTime(name) ? 'datetime-local' : 'text'}
            value={params.get(name) ?? ''}
            onChange={({ target }) => {
              setPage(0);
              set(name, target.value);
            }}
          />
        ))}
      </Fields>
      <Panel flush>
        <Load query={audit} what="The audit log">
          {({ entries, total, total_is }) =>
            total === 0 ? (
              <Empty title="No entries match" />
            ) : (
              <>
                <Entries entries={entries} />
                <Pager page={page} perPage={rowsPerPage} total={total} isLeast={total_is === 'at_least'} onPage={setPage} />
              </>
            )
          }
        </Load>
      </Panel>
    </>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  const keyName = useKeyNames();
  return (
    <Table
      stacks
      label="Audit log"
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        { name: 'When', tabular: true, cell: ({ timestamp }) => moment(timestamp) },
        {
          name: 'Action',
          cell: ({ action, resource }) => (resource === 'packet' ? words(action) : `${words(resource)}: ${words(action)}`),
        },
        {
          name: 'Actor',
          cell: ({ actor }) => <Long>{actor.startsWith('key:') ? `key: ${keyName(actor.slice('key:'.length))}` : actor}</Long>,
        },
        {
          name: 'Packet',
          cell: ({ packet_id: id }) =>
            id === null ? (
              '–'
            ) : (
              <Link to={`/packets/${id}`}>
                <code>{id.slice(-8)}</code>
              </Link>
            ),
        },
        {
          name: 'Details',
          muted: true,
          cell: ({ details }) => {
            const text = Object.entries(details)
              .filter(([name, value]) => value !== null && !(name === 'response' && details.data))
              // Of ids only the last characters are shown.
              .map(([name, value]) => `${words(name)}: ${isId(String(value)) ? String(value).slice(-8) : detailText(value)}`)
              .join(' · ');
            return text === '' ? null : <Long>{cut(text, 200)}</Long>;
          },
        },
      ]}
    />
  );
}

/** Buttons that download the entries that match: an export with its chain of digests, or without the right to that the newest ones. */
function Downloads({ filters }: { filters: Record<string, string> }) {
  const [busy, setBusy] = useState(false);
  const mayExport = useMay('manage');
  const collect = async (format: 'csv' | 'jsonl', type: string, write: (entries: readonly AuditEntry[]) => string) => {
    const name = `audit.${format}`;
    // Reading a text drops the mark by which spreadsheets know UTF-8.
    if (mayExport) return download(name, (format === 'csv' ? '\uFEFF' : '') + (await exportAudit(format, filters)), type);
    const entries = await readAudit(filters, maxEntries);
    download(name, write(entries), type);
    if (entries.length === maxEntries)
      toast({ text: `The file has the newest ${count(maxEntries)} entries. Narrow the filters for others.` });
  };
  const start = (...args: Parameters<typeof collect>) => {
    setBusy(true);
    collect(...args)
      .catch((error: Error) => toast({ text: `The download failed: ${error.message}`, tone: 'bad' }))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <Button icon={Download} busy={busy} onClick={() => start('csv', 'text/csv', csvOf)}>
        CSV
      </Button>
      <Button icon={Download} busy={busy} onClick={() => start('jsonl', 'application/jsonl', jsonLinesOf)}>
        JSON Lines
      </Button>
    </>
  );
}
