// Loaded before Portkey's gateway: its calls of providers go to the address in INTERNET, as `<address>/<host>/<path>`.
const { fetch } = globalThis;
const { INTERNET } = process.env;

globalThis.fetch = (input, options) => {
  const url = new URL(input instanceof Request ? input.url : input);
  if (url.origin === INTERNET) return fetch(input, options);
  const redirected = `${INTERNET}/${url.host}${url.pathname}${url.search}`;
  return fetch(input instanceof Request ? new Request(redirected, input) : redirected, options);
};
