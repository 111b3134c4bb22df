import { keptText } from '../../../kit/web/shared-value.ts';

/** The name that the person answered with last, in this browser. */
export const keptName = keptText('localStorage', 'baton.name');
