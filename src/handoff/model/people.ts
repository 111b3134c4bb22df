/** The prefix of the name of a group, where a name may be a person's or a group's. */
export const groupPrefix = 'group:';

/** A name in the form in which names of people are compared: trimmed, in NFC, without case. */
export const nameKey = (name: string): string => name.trim().normalize('NFC').toLowerCase();

/** Whether two names name the same person. */
export const isSamePerson = (one: string, other: string): boolean => nameKey(one) === nameKey(other);
