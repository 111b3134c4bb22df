import { plural } from '../wording.ts';
import { backUp } from './backup.ts';
import { exportTo } from './export.ts';
import { importFrom } from './import.ts';

const ofTenant = (id: string | undefined): string => (id === undefined ? '' : ` of the tenant ${id}`);

/** What operators do with a database and a file, by the names of the commands; each returns what it did, as a sentence. */
export const maintenance = {
  async backup(file: string, { databaseUrl }: { databaseUrl: string }): Promise<string> {
    return `Copied the database to ${file}: ${await backUp(databaseUrl, file)} bytes.`;
  },
  async export(file: string, parts: Parameters<typeof exportTo>[1]): Promise<string> {
    const { rows, bytes } = await exportTo(file, parts);
    return `Exported ${plural(rows, 'row')}${ofTenant(parts.tenant)} to ${file}: ${bytes} bytes.`;
  },
  /** An export of which nothing is written: whether every row can be read. */
  async check(_: string, parts: Parameters<typeof exportTo>[1]): Promise<string> {
    const { rows, bytes } = await exportTo(undefined, parts);
    return `Read ${plural(rows, 'row')}${ofTenant(parts.tenant)}: an export has ${bytes} bytes.`;
  },
  async import(file: string, parts: Parameters<typeof importFrom>[1]): Promise<string> {
    const { rows, tenant } = await importFrom(file, parts);
    return `Imported ${plural(rows, 'row')}${ofTenant(tenant)} from ${file}.`;
  },
};
