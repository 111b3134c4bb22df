import { useQueryClient } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useBlocker, useNavigate, useParams, useSearchParams } from 'react-router';

import { Button } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { useToast } from '../../../kit/web/components/toasts.tsx';
import { counted, durationText } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import { api, type Fault, faultsOf, isRefusal } from '../data/api.ts';
import { useChain, useCheck, useDebounced, useMayWrite, useSaveChain } from '../data/queries.ts';
import { Conflict } from '../edit/conflict.tsx';
import { byPlace, type ChainDraft, draftOf, emptyDraft, emptyProvider, emptyRule, moved, requestOf } from '../edit/draft.ts';
import { ProviderFields } from '../edit/provider-fields.tsx';
import { RuleFields } from '../edit/rule-fields.tsx';
import { Sortable } from '../edit/sortable.tsx';
import { Load } from '../parts/load.tsx';
import { useTitle } from '../parts/title.ts';
import styles from './chain-edit.module.css';

/** A new chain; `?from=` begins with a copy of another. */
export function NewChain() {
  const [params] = useSearchParams();
  const from = params.get('from');
  useTitle('New chain');
  return from === null ? <Form key="new" start={emptyDraft()} /> : <CopyOf id={from} />;
}

function CopyOf({ id }: { id: string }) {
  const chain = useChain(id);
  return (
    <Load query={chain} what="The chain to copy">
      {(found) => <Form key={found.id} start={{ ...draftOf(found), name: `${found.name} copy` }} />}
    </Load>
  );
}

/** A chain that is kept, to be changed. */
export function EditChain() {
  const { id = '' } = useParams();
  const chain = useChain(id);
  useTitle(chain.data === undefined ? undefined : `Edit ${chain.data.name}`);
  return (
    <Load query={chain} what="The chain">
      {(found) => <Form key={found.id} start={draftOf(found)} kept={found} />}
    </Load>
  );
}

function Form({ start, kept }: { start: ChainDraft; kept?: Chain }) {
  const navigate = useNavigate();
  const toast = useToast();
  const client = useQueryClient();
  const save = useSaveChain();
  const mayWrite = useMayWrite();
  // The version that was opened: a change by somebody else meanwhile must not slip in between.
  const [base, setBase] = useState(kept);
  const [draft, setDraft] = useState(start);
  const [theirs, setTheirs] = useState<Chain>();
  const [tried, setTried] = useState(false);
  const saved = useRef(false);
  const form = useRef<HTMLFormElement>(null);

  const begun = useMemo(() => JSON.stringify(requestOf(start)), [start]);
  const request = useMemo(() => requestOf(draft), [draft]);
  const dirty = JSON.stringify(request) !== begun;
  const settled = useDebounced(request, 300);
  const check = useCheck(settled, dirty || tried);
  const faults: readonly Fault[] = dirty || tried ? faultsOf(check.error) : [];
  const faultOf = (field: string) => faults.find((fault) => fault.field === field || fault.field.startsWith(`${field}.`))?.detail;

  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) => dirty && !saved.current && currentLocation.pathname !== nextLocation.pathname,
  );
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [dirty]);

  const set = (changes: Partial<ChainDraft>) => setDraft((before) => ({ ...before, ...changes }));
  const setProvider = (index: number, changes: Partial<ChainDraft['providers'][number]>) =>
    setDraft((before) => {
      const old = before.providers[index]!;
      const providers = before.providers.map((provider, place) => (place === index ? { ...provider, ...changes } : provider));
      // A rule that names the provider follows it to its new name.
      const renamed = changes.name !== undefined && old.name !== '';
      const rules = renamed
        ? before.rules.map((rule) => ({ ...rule, providers: rule.providers.map((name) => (name === old.name ? changes.name! : name)) }))
        : before.rules;
      return { ...before, providers, rules };
    });
  const setRule = (index: number, changes: Partial<ChainDraft['rules'][number]>) =>
    setDraft((before) => ({ ...before, rules: before.rules.map((rule, place) => (place === index ? { ...rule, ...changes } : rule)) }));

  function send(version: number | undefined): void {
    setTried(true);
    save.mutate(
      { ...(base === undefined ? {} : { id: base.id }), ...(version === undefined ? {} : { version }), chain: request },
      {
        onSuccess(chain) {
          saved.current = true;
          toast({ text: `${chain.name} is saved.`, tone: 'good' });
          void navigate(`/chains/${chain.id}`);
        },
        async onError(error) {
          if (isRefusal(error, 412) && base !== undefined) {
            setTheirs(await api().getChain({ params: { id: base.id } }));
            return;
          }
          requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus());
        },
      },
    );
  }
  function submit(event: FormEvent): void {
    event.preventDefault();
    send(base?.version);
  }

  const names = draft.providers.map(({ name }) => name.trim());
  const sendError = [400, 412].some((status) => isRefusal(save.error, status)) ? null : save.error;
  return (
    <form ref={form} onSubmit={submit} className={styles.form} noValidate>
      <PageHeader
        title={base === undefined ? 'New chain' : `Edit ${base.name}`}
        subtitle={base === undefined ? undefined : `Version ${base.version}`}
        actions={
          <>
            <Button onClick={() => void navigate(base === undefined ? '/chains' : `/chains/${base.id}`)}>Cancel</Button>
            <Button type="submit" look="primary" busy={save.isPending} disabled={!mayWrite}>
              Save
            </Button>
          </>
        }
      />
      {mayWrite ? null : <Callout tone="info">This key may only read: changes can’t be saved with it.</Callout>}
      {sendError === null ? null : (
        <Callout tone="bad" alert title="The chain was not saved.">
          {sendError.message}
        </Callout>
      )}
      <Assessment check={check.data} faults={faults} tried={tried} checking={check.isFetching} />
      <Panel title="Chain">
        <div className={styles.fields}>
          <TextField label="Name" value={draft.name} onChange={(event) => set({ name: event.target.value })} error={faultOf('name')} />
          <TextArea
            label="Description"
            rows={2}
            placeholder="What the chain is for"
            value={draft.description}
            onChange={(event) => set({ description: event.target.value })}
            error={faultOf('description')}
          />
        </div>
      </Panel>
      <Panel
        title="Providers, in the order they are tried"
        actions={
          <Button icon={Plus} onClick={() => set({ providers: byPlace([...draft.providers, emptyProvider()]) })}>
            Add a provider
          </Button>
        }
      >
        <Sortable
          items={draft.providers}
          nameOf={({ name }, index) => `provider ${name === '' ? index + 1 : name}`}
          onMove={(from, to) => set({ providers: byPlace(moved(draft.providers, from, to)) })}
        >
          {(provider, index) => (
            <ProviderFields
              provider={provider}
              faultOf={(field) => faultOf(`providers.${index}.${field}`)}
              onChange={(changes) => setProvider(index, changes)}
              onRemove={
                draft.providers.length === 1
                  ? undefined
                  : () => set({ providers: byPlace(draft.providers.filter((_, place) => place !== index)) })
              }
            />
          )}
        </Sortable>
      </Panel>
      <Panel
        title="Rules, the first that fits decides"
        actions={
          <Button icon={Plus} onClick={() => set({ rules: [...draft.rules, emptyRule()] })}>
            Add a rule
          </Button>
        }
      >
        {draft.rules.length === 0 ? (
          <p className={styles.muted}>
            Without rules every failure goes to the next provider, except invalid requests and content filters, which are returned to the
            caller.
          </p>
        ) : (
          <Sortable
            items={draft.rules}
            nameOf={(_, index) => `rule ${index + 1}`}
            onMove={(from, to) => set({ rules: moved(draft.rules, from, to) })}
          >
            {(rule, index) => (
              <RuleFields
                rule={rule}
                providers={names}
                faultOf={(field) => faultOf(`fallback_rules.${index}.${field}`)}
                onChange={(changes) => setRule(index, changes)}
                onRemove={() => set({ rules: draft.rules.filter((_, place) => place !== index) })}
              />
            )}
          </Sortable>
        )}
      </Panel>
      {theirs === undefined ? null : (
        <Conflict
          mine={request}
          theirs={theirs}
          onClose={() => setTheirs(undefined)}
          onKeepTheirs={() => {
            client.setQueryData(['chains', theirs.id], theirs);
            setBase(theirs);
            setDraft(draftOf(theirs));
            setTheirs(undefined);
            save.reset();
          }}
          onSaveMine={() => {
            setBase(theirs);
            setTheirs(undefined);
            send(theirs.version);
          }}
        />
      )}
      {blocker.state === 'blocked' ? (
        <Dialog
          open
          onClose={() => blocker.reset()}
          title="Leave without saving?"
          actions={
            <>
              <Button onClick={() => blocker.reset()}>Go on editing</Button>
              <Button look="danger" onClick={() => blocker.proceed()}>
                Leave
              </Button>
            </>
          }
        >
          <p>What you changed here is not saved and will be lost.</p>
        </Dialog>
      ) : null}
    </form>
  );
}

interface AssessmentProps {
  check:
    | { warnings: readonly { code: string; field: string | null; detail: string }[]; worst_case: { attempts: number; latency_ms: number } }
    | undefined;
  faults: readonly Fault[];
  tried: boolean;
  checking: boolean;
}

/** What the service says of the chain as it is typed: faults, or warnings and the worst case. */
function Assessment({ check, faults, tried }: AssessmentProps) {
  return (
    <div role="status" aria-live="polite" className={styles.assessment}>
      {faults.length > 0 && tried ? (
        <Callout tone="bad" title={counted(faults.length, 'fault')}>
          <ul className={styles.list}>
            {faults.map(({ field, detail }) => (
              <li key={`${field} ${detail}`}>{detail}</li>
            ))}
          </ul>
        </Callout>
      ) : null}
      {faults.length > 0 || check === undefined ? null : (
        <>
          <p className={styles.muted}>
            Worst case: {counted(check.worst_case.attempts, 'attempt')} and {durationText(check.worst_case.latency_ms)} for one prompt.
          </p>
          {check.warnings.length === 0 ? null : (
            <Callout tone="warn">
              <ul className={styles.list}>
                {check.warnings.map(({ code, field, detail }) => (
                  <li key={`${code} ${field} ${detail}`}>{detail}</li>
                ))}
              </ul>
            </Callout>
          )}
        </>
      )}
    </div>
  );
}
