/** The ids of the first rows that together have at most `maxBytes`, but at least one. Drivers may return numbers as text. */
export function fitting(rows: readonly { id: string; bytes: number | string }[], maxBytes: number): string[] {
  let bytes = 0;
  const beyond = rows.findIndex((row) => {
    bytes += Number(row.bytes);
    return bytes > maxBytes;
  });
  return rows.slice(0, beyond === -1 ? undefined : Math.max(beyond, 1)).map(({ id }) => id);
}
