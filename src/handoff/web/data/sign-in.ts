import { readJson } from '../../../kit/json.ts';
import type { SignIn } from '../../../kit/web/app/key-form.tsx';
import { trySession } from '../../../kit/web/app/session.ts';
import { transport } from '../../../kit/web/app/transport.ts';

interface Offered {
  readonly provider: string;
  /** The address of the service, without a slash at its end. */
  readonly address: string;
  readonly isOnly: boolean;
}

/** What the service says about sign-in in the page; undefined: nobody signs in. */
function read(): Offered | undefined {
  const content = document.querySelector<HTMLMetaElement>('meta[name="baton-sign-in"]')?.content;
  return content === undefined ? undefined : readJson<Offered>(content);
}

const offered = read();

/** How people sign in; undefined: they do not. */
export const signIn: SignIn | undefined = offered && {
  provider: offered.provider,
  isOnly: offered.isOnly,
  href: () => `${offered.address}/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`,
};

/** Uses the session of the browser, if people sign in; whether they do. */
export function startSession(): boolean {
  if (offered !== undefined) trySession();
  return offered !== undefined;
}

/** Signs the person out here, and goes where the identity provider does. */
export async function signOut(): Promise<void> {
  const controller = new AbortController();
  const answer = await transport({ method: 'POST', url: `${location.origin}/sign-out`, headers: {}, signal: controller.signal });
  let text = '';
  for await (const chunk of answer.chunks()) text += chunk;
  location.assign(readJson<{ url: string }>(text).url);
}
