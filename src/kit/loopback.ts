/** Whether a host name always stands for this machine (RFC 6761, 6.3). */
export const isLocalName = (host: string): boolean => /^(.+\.)?localhost$/i.test(host);

/** Whether a host is a loopback name or address; an IPv6 address may have its brackets. */
export const isLoopback = (host: string): boolean => isLocalName(host) || /^(\[?::1\]?|127(\.\d+){3})$/.test(host);
