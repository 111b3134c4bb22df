import { useEffect, useMemo, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { useDebounced } from '../../../kit/web/app/queries.ts';
import { besideField, type Fault, faultsOf, hasStatus } from '../../../kit/web/app/transport.ts';
import { toast } from '../../../kit/web/components/toasts.tsx';
import type { Chain, ChainRequest } from '../../model/chain.ts';
import { readChain, useCheck, useSaveChain } from '../data/queries.ts';
import { labelled } from '../parts/labels.ts';
import { type ChainDraft, draftOf, requestOf } from './draft.ts';

/** How long the draft must be unchanged before the service checks it, in milliseconds. */
const settleMs = 300;

/** The state of an editor: the draft, its check, saving, and a conflicting version that somebody else has saved. */
export function useChainForm(start: ChainDraft, kept?: Chain) {
  const [draft, setDraft] = useState(start);
  // The version that was opened, for `If-Match`: changes by others must not be overwritten.
  const [base, setBase] = useState(kept);
  const [begun, setBegun] = useState(() => JSON.stringify(requestOf(start)));
  const request = useMemo(() => requestOf(draft), [draft]);
  const dirty = JSON.stringify(request) !== begun;
  // A field shows its fault once the user has left it, not while its first letters are typed.
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const saving = useSaving(request);
  const tried = saving.tried;
  const settled = useDebounced(request, settleMs);
  // An unchanged draft is not checked, since its faults are not the user's.
  const check = useCheck(settled, tried || (dirty && JSON.stringify(settled) !== begun));
  const checkFaults = dirty || tried ? faultsOf(check.error) : [];
  const faults: readonly Fault[] = saving.faults.length > 0 ? saving.faults : checkFaults;
  return {
    draft,
    onChange: setDraft,
    base,
    request,
    check: check.data,
    faults,
    /** The fault of a field, by dotted path, or of a part of it. `fieldKey` identifies the field, whatever the order of its row. */
    faultOf(field: string, fieldKey: string): string | undefined {
      if (!tried && !left.has(fieldKey)) return undefined;
      const found = faults.find((fault) => fault.field === field || fault.field.startsWith(`${field}.`));
      return found && labelled(besideField(found));
    },
    /** Called when the user leaves a field, which then shows its fault. */
    onLeave: (fieldKey: string) => setLeft((before) => (before.has(fieldKey) ? before : new Set(before).add(fieldKey))),
    /** Whether leaving the page would lose changes. */
    isUnsaved: () => dirty && !saving.isSaved(),
    saving,
    save: () => saving.send(base),
    keepTheirs: (theirs: Chain) => {
      const next = draftOf(theirs);
      setBase(theirs);
      setDraft(next);
      setBegun(JSON.stringify(requestOf(next)));
      saving.reset();
    },
    saveMine: (theirs: Chain) => {
      setBase(theirs);
      saving.send(theirs);
    },
  };
}

/** The properties of a part of the editor: the draft and its changes. */
export type PartProps = Pick<ReturnType<typeof useChainForm>, 'draft' | 'onChange' | 'faultOf' | 'onLeave'>;

/** The properties of the fields of a row: of a provider or a rule. */
export type RowProps<Row> = PartProps & { row: Row; index: number };

function useSaving(request: ChainRequest) {
  const navigate = useNavigate();
  const [tried, setTried] = useState(false);
  const [theirs, setTheirs] = useState<Chain>();
  const saved = useRef(false);
  const form = useRef<HTMLFormElement>(null);
  const {
    mutate,
    error,
    variables,
    isPending,
    reset: forget,
  } = useSaveChain({
    onSuccess({ id, name }) {
      saved.current = true;
      toast({ text: `${name} is saved.`, tone: 'good' });
      void navigate(`/chains/${id}`);
    },
    onError(refusal, { id, chain: { name } }) {
      if (id === undefined || !hasStatus(refusal, 412)) return;
      readChain(id).then(setTheirs, (error: Error) => toast({ text: `${name} was not saved: ${error.message}`, tone: 'bad' }));
    },
  });
  useEffect(() => {
    if (hasStatus(error, 400)) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [error]);

  function send(base: Chain | undefined): void {
    setTried(true);
    setTheirs(undefined);
    const onto = base === undefined ? {} : { id: base.id, version: base.version };
    mutate({ ...onto, chain: request });
  }
  return {
    send,
    form,
    tried,
    busy: isPending,
    isSaved: () => saved.current,
    /** The faults of exactly this request. */
    faults: variables?.chain === request ? faultsOf(error) : [],
    /** Why saving failed, unless the reason is a field or another version. */
    error: hasStatus(error, 400) || hasStatus(error, 412) ? null : error,
    theirs,
    reset: () => {
      setTheirs(undefined);
      forget();
    },
  };
}
