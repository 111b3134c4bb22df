/** What tells a chain from others of its name: the end of its id. Undefined if its name is unique. */
export function distinction({ id, name }: { id: string; name: string }, all: readonly { name: string }[]): string | undefined {
  return all.filter((other) => other.name === name).length > 1 ? `…${id.slice(-6)}` : undefined;
}

/** The name of a chain in a list of choices, with what tells it from others of that name. */
export function chainLabel(chain: { id: string; name: string }, all: readonly { name: string }[]): string {
  const apart = distinction(chain, all);
  return apart === undefined ? chain.name : `${chain.name} (${apart})`;
}
