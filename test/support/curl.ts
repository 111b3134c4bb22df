/**
 * Stands in for curl where the machine has none: `-sS`, `-X METHOD`, `-H 'Name: value'`, `-d BODY` and an address, which
 * is all that the README uses. Anything else ends it with an error, as a command that can't be pasted should.
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
  else if (argument !== '-sS') throw new Error(`This stand-in for curl does not know ${argument}.`);
}
if (url === undefined) throw new Error('curl: no URL specified');
const answer = await fetch(url, {
  method: method ?? (body === undefined ? 'GET' : 'POST'),
  headers,
  ...(body === undefined ? {} : { body }),
});
process.stdout.write(await answer.text());
