import { BlockList, isIP } from 'node:net';

import { bareHost } from '../loopback.ts';

/**
 * IPv4 ranges that are not public: IANA's special-purpose registry (RFC 6890), the 6to4 relays (RFC 7526), multicast and
 * reserved ranges.
 */
const refusedIpv4 = subnets('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/** IPv6 global unicast (RFC 4291, 2.4). It excludes loopback, mapped, NAT64, unique local, link-local and multicast. */
const globalIpv6 = subnets('ipv6', ['2000::/3']);

/** Ranges of it that are not public: IETF protocol assignments (Teredo, ORCHID), documentation, and 6to4, which embeds any IPv4. */
const refusedIpv6 = subnets('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** Whether an IP address, in any notation that `net.isIP` accepts, is public. */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !refusedIpv4.check(address, 'ipv4');
    case 6:
      return globalIpv6.check(address, 'ipv6') && !refusedIpv6.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Hosts and address ranges that are allowed although they are not public. */
export interface AllowList {
  hasHost(host: string): boolean;
  hasAddress(address: string): boolean;
}

/**
 * Parses the allow list of a setting. Each item is a host name, an IP address or a CIDR range.
 * @throws Error whose message lists the allowed forms
 */
export function parseAllowList(items: readonly string[]): AllowList {
  const hosts = new Set<string>();
  const ranges = new BlockList();
  for (const item of items) {
    const [base = '', bits, ...rest] = item.replaceAll(/[[\]]/g, '').split('/');
    const version = isIP(base);
    const width = version === 4 ? 32 : 128;
    if (version === 0) {
      if (bits !== undefined || !/^[\w-]+(\.[\w-]+)*\.?$/.test(item)) throw notAnItem(item);
      hosts.add(bareHost(item));
    } else {
      const prefix = bits ?? String(width);
      if (rest.length > 0 || !/^\d{1,3}$/.test(prefix) || Number(prefix) > width) throw notAnItem(item);
      ranges.addSubnet(base, Number(prefix), version === 4 ? 'ipv4' : 'ipv6');
    }
  }
  return {
    hasHost: (host) => hosts.has(bareHost(host)),
    hasAddress: (address) => ranges.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'),
  };
}

/**
 * An IP address or CIDR range of a setting, unchanged.
 * @throws Error whose message lists the allowed forms
 */
export function addressRange(item: string): string {
  if (isIP(item.split('/')[0]!) === 0)
    throw new Error(`a comma-separated list of IP addresses and CIDR ranges, not ${JSON.stringify(item)}`);
  parseAllowList([item]);
  return item;
}

function subnets(family: 'ipv4' | 'ipv6', cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [base, bits] = cidr.split('/') as [string, string];
    list.addSubnet(base, Number(bits), family);
  }
  return list;
}

const notAnItem = (item: string) => new Error(`host names, IP addresses or CIDR ranges, separated by commas, not ${JSON.stringify(item)}`);
