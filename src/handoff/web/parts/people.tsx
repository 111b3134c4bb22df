import { useState } from 'react';

import { Load } from '../../../kit/web/app/load.tsx';
import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Empty } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Pager, Table } from '../../../kit/web/components/table.tsx';
import type { Person } from '../../model/person.ts';
import type { Session } from '../../model/session.ts';
import { rowsPerPage, usePeople, useSessions } from '../data/queries.ts';
import { FormDialog } from './form-dialog.tsx';
import { Name, TimeLeft, TimeSince } from './texts.tsx';

/** The open sessions: those of the person, and of the tenant for who manages. */
export function Sessions() {
  const sessions = useSessions();
  const [ending, setEnding] = useState<Session>();
  return (
    <Panel title="Sessions" flush>
      <LoadedTable
        query={sessions}
        empty={<Empty title="Nobody is signed in" />}
        stacks
        label="Sessions"
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Person',
            by: ({ person }) => person,
            cell: ({ person, current }) => (
              <>
                <Name>{person}</Name> {current ? <Badge tone="info">this one</Badge> : null}
              </>
            ),
          },
          { name: 'Last seen', by: ({ last_seen_at }) => last_seen_at, cell: ({ last_seen_at }) => <TimeSince at={last_seen_at} /> },
          { name: 'Ends', by: ({ expires_at }) => expires_at, cell: ({ expires_at }) => <TimeLeft until={expires_at} /> },
          {
            name: 'Actions',
            nameHidden: true,
            cell: (session) =>
              session.current ? null : (
                <Button look="quiet" aria-label={`End the session of ${session.person}`} onClick={() => setEnding(session)}>
                  End
                </Button>
              ),
          },
        ]}
      />
      {ending === undefined ? null : (
        <FormDialog
          title={`End the session of ${ending.person}`}
          onClose={() => setEnding(undefined)}
          submit="End"
          danger
          send={(client) => client.deleteSession({ params: { id: ending.id } })}
          refreshes={['sessions']}
        >
          <p>The browser is signed out at once. The person can sign in again; suspend the person to prevent that.</p>
        </FormDialog>
      )}
    </Panel>
  );
}

const actions = {
  suspend: {
    submit: 'Suspend',
    text: 'Sessions and open answer links end now, keys in the name are refused, and policies no longer count the person.',
  },
  resume: { submit: 'Resume', text: 'The person may sign in and answer again. Links that have ended stay ended.' },
  release: { submit: 'Release', text: 'Sessions in the name end, and whoever signs in under it next has the name.' },
} as const;

/** The people of the tenant, and what they answer by. */
export function People() {
  const [page, setPage] = useState(0);
  const people = usePeople(page);
  const [asked, setAsked] = useState<{ what: keyof typeof actions; name: string }>();
  return (
    <Panel title="People" flush>
      <Load query={people} what="The people">
        {({ people: found, total }) =>
          total === 0 ? (
            <Empty title="No people yet" />
          ) : (
            <>
              <PeopleTable people={found} onAsk={(what, name) => setAsked({ what, name })} />
              <Pager page={page} perPage={rowsPerPage} total={total} onPage={setPage} />
            </>
          )
        }
      </Load>
      {asked === undefined ? null : (
        <FormDialog
          title={`${actions[asked.what].submit} ${asked.name}`}
          onClose={() => setAsked(undefined)}
          submit={actions[asked.what].submit}
          danger={asked.what !== 'resume'}
          send={(client) => {
            const request = { params: { name: asked.name } };
            if (asked.what === 'suspend') return client.suspendPerson(request);
            return asked.what === 'resume' ? client.resumePerson(request) : client.releasePerson(request);
          }}
          refreshes={['people']}
        >
          <p>{actions[asked.what].text}</p>
        </FormDialog>
      )}
    </Panel>
  );
}

const words = { sign_in: 'sign-in', key: 'key', link: 'link' } as const;

function PeopleTable({ people, onAsk }: { people: readonly Person[]; onAsk: (what: keyof typeof actions, name: string) => void }) {
  const button = (what: keyof typeof actions, name: string) => (
    <Button look="quiet" aria-label={`${actions[what].submit} ${name}`} onClick={() => onAsk(what, name)}>
      {actions[what].submit}
    </Button>
  );
  return (
    <Table
      stacks
      label="People"
      rows={people}
      keyOf={({ name }) => name}
      columns={[
        {
          name: 'Name',
          cell: ({ name, suspended }) => (
            <>
              <Name>{name}</Name> {suspended ? <Badge tone="warn">suspended</Badge> : null}
            </>
          ),
        },
        { name: 'Groups', cell: ({ groups }) => <Name>{groups.length === 0 ? 'none' : groups.join(', ')}</Name> },
        {
          name: 'Answers by',
          cell: ({ methods }) => (methods.length === 0 ? 'nothing' : methods.map((method) => words[method]).join(', ')),
        },
        { name: 'Last seen', cell: ({ last_seen_at }) => (last_seen_at === null ? 'never' : <TimeSince at={last_seen_at} />) },
        {
          name: 'Actions',
          nameHidden: true,
          cell: ({ name, suspended, methods }) => (
            <>
              {button(suspended ? 'resume' : 'suspend', name)}
              {methods.includes('sign_in') ? button('release', name) : null}
            </>
          ),
        },
      ]}
    />
  );
}
