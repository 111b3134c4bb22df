/** What a unit of work did to its group's state, so that a unit that throws leaves nothing behind. */
export class Journal {
  readonly #undo: (() => void)[] = [];

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    const had = before !== undefined || map.has(key);
    map.set(key, value);
    this.#undo.push(() => void (had ? map.set(key, before as V) : map.delete(key)));
  }

  delete<K, V>(map: Map<K, V>, key: K): void {
    if (!map.has(key)) return;
    const before = map.get(key) as V;
    map.delete(key);
    this.#undo.push(() => void map.set(key, before));
  }

  push<T>(list: T[], item: T): void {
    list.push(item);
    this.#undo.push(() => void list.pop());
  }

  /** The unit returned: what it did stays. */
  keep(): void {
    this.#undo.length = 0;
  }

  /** The unit threw: everything is as it was before it. */
  takeBack(): void {
    while (this.#undo.length > 0) this.#undo.pop()!();
  }
}
