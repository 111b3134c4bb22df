/** How many redirects a browser follows. */
const maxRedirects = 20;

/** A browser without pages: it keeps cookies, follows redirects and sends forms. */
export class Visitor {
  /** The addresses that it was sent to, in order. */
  readonly visited: string[] = [];
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Requests an address, with the cookies of its origin; keeps those that the answer sets. */
  async request(url: string, options: RequestInit = {}): Promise<Response> {
    this.visited.push(url);
    const { origin } = new URL(url);
    const own = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, own);
    const headers = new Headers(options.headers);
    if (own.size > 0) headers.set('cookie', [...own].map(([name, value]) => `${name}=${value}`).join('; '));
    const answer = await fetch(url, { ...options, headers, redirect: 'manual' });
    for (const cookie of answer.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';');
      const at = pair.indexOf('=');
      const value = pair.slice(at + 1);
      if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(cookie)) own.delete(pair.slice(0, at));
      else own.set(pair.slice(0, at), value);
    }
    return answer;
  }

  /** Opens an address and follows redirects; returns the last answer with its address. */
  async open(url: string, options: RequestInit = {}): Promise<{ answer: Response; url: string }> {
    let [at, with_] = [url, options];
    for (let redirects = 0; redirects < maxRedirects; redirects += 1) {
      const answer = await this.request(at, with_);
      const location = answer.headers.get('location');
      if (location === null) return { answer, url: at };
      await answer.body?.cancel();
      [at, with_] = [new URL(location, at).href, {}];
    }
    throw new Error(`More than ${maxRedirects} redirects, the last to ${at}`);
  }

  /** Signs in at the service as a person of the provider; returns where the browser is then. */
  async signIn(service: string, person: string, returnTo = '/console'): Promise<{ answer: Response; url: string }> {
    const asked = await this.open(`${service}/sign-in?return_to=${encodeURIComponent(returnTo)}`);
    if (!asked.url.includes('/interaction/')) return asked;
    await asked.answer.body?.cancel();
    return this.open(asked.url, { method: 'POST', body: new URLSearchParams({ person }) });
  }

  /** Calls the API as the console does for a person who signed in. */
  async call(service: string, method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { 'content-type': 'application/json', origin: service, 'x-requested-with': 'baton' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return this.request(service + path, { method, ...(method === 'GET' ? {} : { headers }), ...sent });
  }
}
