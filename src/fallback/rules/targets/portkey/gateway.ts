import type { RehearsedGateway } from '../gateway.ts';
import { redirectFile, withTimeouts } from './own-file.ts';
import { streamReasons } from './streams.ts';

/** Portkey's gateway in a rehearsal. The model of a request is that of each target. */
export const portkeyGateway: RehearsedGateway = {
  modelOf: ({ name }) => name,
  environmentOf: (given) => given,
  withTimeouts,
  ofStreams: streamReasons,
  redirectFile,
};
