import { hash } from 'node:crypto';

/** What the id of a person is stored and logged as, beside the packets that hold the person's data: SHA-256 in lower-case hexadecimal. */
export const subjectDigest = (subject: string): string => hash('sha256', subject);

/** The digests of the people whose data a packet holds, each once. */
export const subjectDigests = ({ metadata }: { readonly metadata: { readonly subjects?: readonly string[] } }): string[] =>
  metadata.subjects === undefined ? [] : [...new Set(metadata.subjects.map(subjectDigest))];
