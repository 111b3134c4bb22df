import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a file that only this user can read and that is whole once it has its name: `write` gets the path of an empty file
 * beside it, which is flushed to the disk and renamed afterwards, and removed when `write` throws.
 * @throws Error when the file exists, its folder does not, or another process is writing it
 */
export async function writeNewFile<T>(file: string, write: (partial: string) => Promise<T> | T): Promise<T> {
  const partial = `${file}.partial`;
  refuseExisting(file);
  try {
    closeSync(openSync(partial, 'wx', 0o600));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new Error(
        `${partial} exists: another process is writing it, or ended before it was complete. Remove the file in the second case.`,
      );
    throw new Error(`${file} can't be created (${code}).`, { cause: error });
  }
  try {
    const result = await write(partial);
    flush(partial);
    refuseExisting(file);
    renameSync(partial, file);
    // The new name is in the folder, which Windows can't open.
    if (process.platform !== 'win32') flush(dirname(file));
    return result;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

function refuseExisting(file: string): void {
  if (existsSync(file)) throw new Error(`${file} exists, and is not overwritten.`);
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
