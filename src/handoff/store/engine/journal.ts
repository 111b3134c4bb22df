/** An undo log of a unit's changes to its group's state, used when the unit throws. */
export class Journal {
  readonly #undo: (() => void)[] = [];

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    const had = before !== undefined || map.has(key);
    map.set(key, value);
    this.#undo.push(() => {
      if (had) map.set(key, before as V);
      else map.delete(key);
    });
  }

  delete<K, V>(map: Map<K, V>, key: K): void {
    if (!map.has(key)) return;
    const before = map.get(key) as V;
    map.delete(key);
    this.#undo.push(() => {
      map.set(key, before);
    });
  }

  push<T>(list: T[], item: T): void {
    list.push(item);
    this.#undo.push(() => {
      list.pop();
    });
  }

  /** Keeps the changes: the unit returned. */
  keep(): void {
    this.#undo.length = 0;
  }

  /** Undoes the changes: the unit threw. */
  rollback(): void {
    while (this.#undo.length > 0) this.#undo.pop()!();
  }
}
