// Checks the built site: every link leads to a page and a heading, and no page or style sheet names a file of another host.
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('dist', import.meta.url));
const files = new Set(globSync('**/*', { cwd: dist }));
const pages = new Map([...files].filter((file) => file.endsWith('.html')).map((file) => [file, readFileSync(`${dist}/${file}`, 'utf8')]));
const decoded = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");
const ids = new Map([...pages].map(([file, text]) => [file, new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => decoded(id)))]));

const faults = [];
for (const [file, text] of pages) {
  if (file === '404.html') continue;
  for (const [, tag, name, value] of text.matchAll(/<(\w+)\b[^>]*? (href|src)="([^"]*)"/g)) {
    const link = decoded(value);
    if (/^(data|mailto):/.test(link)) continue;
    if (/^(https?:)?\/\//.test(link)) {
      if (tag !== 'a' || name !== 'href') faults.push(`${file} loads ${link}`);
      continue;
    }
    const [path, heading] = link.split('#', 2);
    let target = path === '' ? file : path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(file), path);
    if (target === '' || target.endsWith('/')) target += 'index.html';
    if (!files.has(target) && files.has(`${target}.html`)) target += '.html';
    if (!files.has(target)) faults.push(`${file} links to ${link}, which does not exist`);
    else if (heading && !ids.get(target)?.has(decodeURIComponent(heading)))
      faults.push(`${file} links to ${link}, which has no such heading`);
  }
}
for (const file of files) {
  if (!file.endsWith('.css')) continue;
  if (/@import\s+["']?https?:|url\(["']?https?:/.test(readFileSync(`${dist}/${file}`, 'utf8')))
    faults.push(`${file} loads something from another host`);
}
if (pages.size < 30) faults.push(`${pages.size} pages are too few`);
if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exit(1);
}
console.log(`${pages.size} pages in tools/site/dist; every link leads to a page and a heading.`);
