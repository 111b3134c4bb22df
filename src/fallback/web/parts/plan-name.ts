import { words } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';

/** What a test put its prompts through: its preset, the caller's own faults, or nothing at all. */
export const planName = ({ mode, preset }: Pick<TestResult, 'mode' | 'preset'>): string =>
  preset === null ? (mode === 'live' ? 'no faults' : 'own faults') : words(preset);
