import { invalid } from '../../kit/errors.ts';

/** The origin of a request, for an address. @throws ServiceError 400 when the header Host is none that an address can contain */
export function requireOrigin(origin: string): string {
  if (/^https?:\/\/[\w.-]+(:\d+)?$/.test(origin) || /^https?:\/\/\[[\da-f:]+\](:\d+)?$/i.test(origin)) return origin;
  throw invalid('Host', 'Host must be the name of this service, since links begin with it; SERVICE_PUBLIC_URL sets another.');
}
