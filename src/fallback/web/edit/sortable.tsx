import { closestCenter, DndContext, type DragEndEvent, KeyboardSensor, PointerSensor, useSensor, useSensors } from '@dnd-kit/core';
import { SortableContext, sortableKeyboardCoordinates, useSortable, verticalListSortingStrategy } from '@dnd-kit/sortable';
import { CSS } from '@dnd-kit/utilities';
import { ArrowDown, ArrowUp, GripVertical } from 'lucide-react';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import styles from './sortable.module.css';

interface SortableProps<T extends { key: string }> {
  items: readonly T[];
  /** The name of an item in announcements: `provider gpt-4o`. */
  nameOf: (item: T, index: number) => string;
  onMove: (from: number, to: number) => void;
  empty?: ReactNode;
  children: (item: T, index: number) => ReactNode;
}

/** A list that is ordered by dragging, by the arrow keys on a row's handle (Space lifts and drops), or by its buttons. */
export function Sortable<T extends { key: string }>({ items, nameOf, onMove, empty, children }: SortableProps<T>) {
  const frame = useRef<HTMLDivElement>(null);
  const keys = items.map(({ key }) => key);
  useFocusOfChanges(frame, keys);
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  );
  // A lifted item is immediately over its own position; announcing that would replace the announcement of lifting.
  const hasMoved = useRef(false);
  const indexOf = (key: unknown) => keys.indexOf(String(key));
  const label = (key: unknown) => {
    const index = indexOf(key);
    return index === -1 ? 'The item' : nameOf(items[index]!, index);
  };
  function drop({ active, over }: DragEndEvent): void {
    if (over === null || active.id === over.id) return;
    onMove(indexOf(active.id), indexOf(over.id));
  }
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={closestCenter}
      onDragEnd={drop}
      accessibility={{
        announcements: {
          onDragStart({ active }) {
            hasMoved.current = false;
            return `${label(active.id)} is lifted. It is at position ${indexOf(active.id) + 1} of ${items.length}.`;
          },
          onDragOver({ active, over }) {
            hasMoved.current ||= over?.id !== active.id;
            return over === null || !hasMoved.current ? undefined : `${label(active.id)} is over position ${indexOf(over.id) + 1}.`;
          },
          onDragEnd: ({ active, over }) =>
            over === null ? undefined : `${label(active.id)} is dropped at position ${indexOf(over.id) + 1}.`,
          onDragCancel: ({ active }) => `${label(active.id)} is back at its position.`,
        },
      }}
    >
      <SortableContext items={keys} strategy={verticalListSortingStrategy}>
        <div ref={frame} tabIndex={-1}>
          {items.length === 0 ? (
            empty
          ) : (
            <ol className="stack">
              {items.map((item, index) => (
                <Row key={item.key} id={item.key} name={nameOf(item, index)} index={index} count={items.length} onMove={onMove}>
                  {children(item, index)}
                </Row>
              ))}
            </ol>
          )}
        </div>
      </SortableContext>
    </DndContext>
  );
}

/** Puts the focus into the first field of an item that was added, and where one was removed with the focus in it, on the next item. */
function useFocusOfChanges(frame: RefObject<HTMLElement | null>, keys: readonly string[]): void {
  const before = useRef(keys);
  useEffect(() => {
    const old = before.current;
    before.current = keys;
    const rows = frame.current?.querySelectorAll('li') ?? [];
    const added = keys.findIndex((key) => !old.includes(key));
    if (keys.length === old.length + 1 && old.every((key) => keys.includes(key))) {
      rows[added]?.querySelector<HTMLElement>('input, select')?.focus();
    } else if (keys.length < old.length && document.activeElement === document.body) {
      const removed = old.findIndex((key) => !keys.includes(key));
      (rows[Math.min(removed, rows.length - 1)]?.querySelector<HTMLElement>('button') ?? frame.current)?.focus();
    }
  });
}

interface RowProps {
  id: string;
  name: string;
  index: number;
  count: number;
  onMove: (from: number, to: number) => void;
  children: ReactNode;
}

function Row({ id, name, index, count, onMove, children }: RowProps) {
  const { attributes, listeners, setNodeRef, setActivatorNodeRef, transform, transition, isDragging } = useSortable({ id });
  return (
    <li
      ref={setNodeRef}
      className={styles.row}
      data-dragging={isDragging || undefined}
      style={{ transform: CSS.Translate.toString(transform), transition }}
    >
      <div className={styles.handles}>
        <Button ref={setActivatorNodeRef} look="quiet" icon={GripVertical} {...attributes} {...listeners} aria-label={`Move ${name}`} />
        <span className={styles.position} aria-hidden="true">
          {index + 1}
        </span>
        <Button
          look="quiet"
          icon={ArrowUp}
          aria-label={`Move ${name} up`}
          aria-disabled={index === 0}
          onClick={() => onMove(index, index - 1)}
        />
        <Button
          look="quiet"
          icon={ArrowDown}
          aria-label={`Move ${name} down`}
          aria-disabled={index === count - 1}
          onClick={() => onMove(index, index + 1)}
        />
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would bring a border and a legend. */}
      <div className="stack" role="group" aria-label={name}>
        {children}
      </div>
    </li>
  );
}
