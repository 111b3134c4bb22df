import { listOf } from '../settings.ts';
import { addressRange, parseAllowList } from './addresses.ts';

/** The proxies whose forwarding headers are trusted. */
export const trustedProxies = {
  variable: 'SERVICE_TRUSTED_PROXIES',
  fallback: '',
  help: "Addresses or CIDR ranges of proxies in front of the service, comma-separated. For their requests the client's address is read from `Forwarded` or `X-Forwarded-For`.",
  parse: listOf(addressRange),
};

/** A list of hosts or CIDR ranges that outgoing requests may reach although they are not public. */
export const privateHosts = listOf((item) => {
  // Throws for an invalid item.
  parseAllowList([item]);
  return item;
});
