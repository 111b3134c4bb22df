import { type Fault, faultOf } from '../../kit/errors.ts';
import type { Params } from '../model/chain.ts';
import { looksLikeKey } from './key-grants.ts';
import { foreignKind, knownKind } from './kinds.ts';

/** The parameters of providers of every kind. */
const commonParams = ['organization', 'headers', 'api_base', 'virtual_key'];

/** The names of the parameters of a kind; null if the kind is unknown, which may have any. */
export function paramNames(kind: string | null): readonly string[] | null {
  const foreign = foreignKind(kind);
  if (foreign === undefined && (kind === null || knownKind(kind) === undefined)) return null;
  return [...commonParams, ...(foreign?.params ?? [])];
}

const reference = /^os\.environ\/([A-Za-z_]\w*)$/;

/** The environment variable that a parameter refers to, as in `os.environ/NAME`; undefined if it is no reference. */
export const variableOf = (value: unknown): string | undefined => (typeof value === 'string' ? reference.exec(value)?.[1] : undefined);

const secretName = /(^|[-_])(key|apikey|secret|token|password|credentials|authorization|auth|cookie)($|[-_])/i;

/** Whether a parameter or header with this name and value holds a secret itself, and not a reference to one. */
export const isSecret = (name: string, value: unknown): boolean =>
  variableOf(value) === undefined && (looksLikeKey(String(value)) || (secretName.test(name) && name !== 'virtual_key'));

/** The faults of a provider's parameters. They never quote a value, which may be a secret. */
export function paramFaults(kind: string | null, params: Params, at: string): Fault[] {
  const names = paramNames(kind);
  return Object.entries(params).flatMap(([name, value]): Fault[] => {
    const field = `${at}.params.${name}`;
    if (names !== null && !names.includes(name))
      return [faultOf(field, `is not a parameter of ${kind}; its parameters are ${names.join(', ')}.`)];
    if (name === 'headers' || typeof value === 'object') {
      const secret = Object.entries(Object(value)).find((header) => isSecret(...header))?.[0];
      return secret === undefined ? [] : [{ field, detail: `${field}.${secret} cannot be stored, because it holds a secret.` }];
    }
    const reference = 'must be a reference such as os.environ/NAME to the variable that holds the secret.';
    return isSecret(name, value) ? [faultOf(field, reference)] : [];
  });
}
