import { words } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';

/** The name of a test's plan: its preset, custom faults, a timeline, or none. */
export const planName = ({ mode, preset, timeline }: TestResult): string => {
  if (timeline !== undefined) return 'a timeline';
  return preset === null ? (mode === 'live' ? 'no faults' : 'own faults') : words(preset);
};
