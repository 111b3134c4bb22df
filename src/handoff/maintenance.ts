import { backUp } from '../kit/sql/backup.ts';
import { readHandoffSettings } from './settings.ts';

/** Where the settings come from that name the database: variables, and a TOML file. */
export interface SettingsSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly config: string | undefined;
}

function databaseUrlOf({ environment, config }: SettingsSource): string {
  return readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG }).databaseUrl;
}

/** Copies the SQLite database of the settings into a new file; returns the size of the copy in bytes. */
export const backUpData = (source: SettingsSource, file: string): Promise<number> => backUp(databaseUrlOf(source), file);
