/** Whether a host name always stands for this machine (RFC 6761, 6.3). */
export const isLocalName = (host: string): boolean => /^(.+\.)?localhost$/i.test(host);

/** Whether a host is a loopback name or address; an IPv6 address may have its brackets. */
export const isLoopback = (host: string): boolean => isLocalName(host) || /^(\[?::1\]?|127(\.\d+){3})$/.test(host);

/** Whether listening on the host is listening on all addresses of the machine. */
export const isWildcard = (host: string): boolean => ['0.0.0.0', '::'].includes(host);

/** A host in lower case, without the dot that ends a full name and the brackets of an IPv6 address. */
export const bareHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
