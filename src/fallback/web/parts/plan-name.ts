import { words } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';

/** The name of a test's plan: its preset, custom faults, or none. */
export const planName = ({ mode, preset }: Pick<TestResult, 'mode' | 'preset'>): string =>
  preset === null ? (mode === 'live' ? 'no faults' : 'own faults') : words(preset);
