import { ServiceError } from './errors.ts';

/** The entity tag of a version (RFC 9110, 8.8.3). */
export function entityTagOf(version: number): string {
  return `"${version}"`;
}

/**
 * `If-Match` (RFC 9110, 13.1.1): one of the tags listed, or `*`.
 * @param what names the resource in the sentence, for example `packet`
 * @throws ServiceError 412 when none of them is the tag that the resource has
 */
export function requireMatch(ifMatch: string | undefined, etag: string, what: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (!tags.includes(etag))
    throw new ServiceError('PRECONDITION_FAILED', `If-Match names another version; the ${what}'s ETag is ${etag} now.`);
}

/** `If-None-Match` (RFC 9110, 13.1.2): one of the tags listed, weakened on the way or not, or `*`. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
