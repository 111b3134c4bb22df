import { commaList } from './comma-list.ts';
import { ServiceError } from './errors.ts';

/** The entity tag of a version (RFC 9110, 8.8.3). `part`: what is shown and changes without a new version; left out: nothing. */
export function entityTagOf(version: number, part?: string): string {
  return `"${version}${part === undefined ? '' : `-${part}`}"`;
}

/** A tag without its part: a change is not refused because of it. */
const versionOf = (tag: string): string => tag.replace(/^"(\d+)-[^"]*"$/, '"$1"');

/**
 * Requires that `If-Match` (RFC 9110, 13.1.1) matches: it lists the resource's tag, or is `*`.
 * @param what names the resource in the sentence, for example `document`
 * @throws ServiceError 412 if it does not
 */
export function requireMatch(ifMatch: string | undefined, etag: string, what: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const tags = commaList(ifMatch).map(versionOf);
  if (!tags.includes(etag))
    throw new ServiceError('PRECONDITION_FAILED', `The request names another version; the ${what}'s ETag is ${etag} now.`);
}

/** Whether `If-None-Match` (RFC 9110, 13.1.2) matches: it lists the tag, strong or weak, or is `*`. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = commaList(ifNoneMatch).map((tag) => tag.replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
