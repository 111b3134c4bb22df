/**
 * Replaces curl where it is not installed. It supports what the README uses: `-sS`, `-X METHOD`, `-H 'Name: value'`,
 * `-d BODY` and a URL. Anything else is an error, so that a README command it can't run fails the test.
 */
const args = process.argv.slice(2);
const headers: Record<string, string> = {};
let method: string | undefined;
let body: string | undefined;
let url: string | undefined;

for (let index = 0; index < args.length; index += 1) {
  const argument = args[index]!;
  const value = () => {
    index += 1;
    return args[index] ?? '';
  };
  if (argument === '-X') method = value();
  else if (argument === '-d') body = value();
  else if (argument === '-H') {
    const [name = '', ...rest] = value().split(':');
    headers[name] = rest.join(':').trim();
  } else if (/^https?:/.test(argument)) url = argument;
  else if (argument !== '-sS') throw new Error(`This replacement for curl does not support ${argument}.`);
}
if (url === undefined) throw new Error('curl: no URL specified');
const answer = await fetch(url, {
  method: method ?? (body === undefined ? 'GET' : 'POST'),
  headers,
  ...(body === undefined ? {} : { body }),
});
process.stdout.write(await answer.text());
