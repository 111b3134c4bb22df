// Writes the pages of the site to `staged/`: the documents, the references of both APIs, and the files that documents link to.
import { copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { forDevelopers, groups, services, sitePathOf } from './pages.mjs';
import { referencePages } from './reference.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const staged = fileURLToPath(new URL('staged', import.meta.url));
const pages = groups.flatMap((group) => Object.keys(group.pages));

const unknown = globSync('docs/*.md', { cwd: root }).filter((page) => !pages.includes(page) && !forDevelopers.includes(page));
if (unknown.length > 0) throw new Error(`tools/site/pages.mjs lists no group for ${unknown.join(', ')}.`);

function write(path, text) {
  const file = join(staged, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The files of the project that pages link to and that are not pages. */
const sources = new Set();

/** The path on the site of the page that shows a file of the project. With a dot it would be the address of a file. */
const sourcePathOf = (target) => `source/${target.toLowerCase().replace(/\.md$/, '').replaceAll('.', '-')}`;

/** Where a link of a page leads on the site. */
function moved(page, link) {
  const [path, heading] = link.split('#', 2);
  if (path === '' || /^[a-z][a-z+.-]*:/i.test(path)) return link;
  const target = posix.normalize(posix.join(posix.dirname(page), path)).replace(/\/$/, '');
  const suffix = heading === undefined ? '' : `#${heading}`;
  if (pages.includes(target)) return `/${sitePathOf(target)}${suffix}`;
  if (target.startsWith('docs/pictures/')) return `/${target.slice('docs/'.length)}`;
  sources.add(target);
  return `/${sourcePathOf(target)}`;
}

/** A picture with two versions as two images, of which the theme of the site shows one. */
function pictures(text) {
  return text.replace(
    /<picture>\s*<source[^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)"[^>]*>\s*<\/picture>/g,
    (_, dark, alt, light) =>
      [light, dark].map((file, index) => `<img class="${['light', 'dark'][index]}-only" alt="${alt}" src="${file}">`).join('\n'),
  );
}

/** A page with the links of the site. Code stays as it is. */
function converted(page, text) {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) =>
      part.startsWith('```mermaid')
        ? '' // The table above says the same.
        : part.startsWith('```')
          ? part
          : pictures(part)
              .replace(/\]\(([^)\s]+)\)/g, (_, link) => `](${moved(page, link)})`)
              .replace(/(<img[^>]* src=")([^"]+)"/g, (_, before, link) => `${before}${moved(page, link)}"`),
    )
    .join('');
}

rmSync(staged, { recursive: true, force: true });
for (const page of pages) write(`${sitePathOf(page)}.md`, converted(page, readFileSync(join(root, page), 'utf8')));

for (const picture of readdirSync(join(root, 'docs/pictures'))) {
  mkdirSync(join(staged, 'public/pictures'), { recursive: true });
  copyFileSync(join(root, 'docs/pictures', picture), join(staged, 'public/pictures', picture));
}

/** The languages of the endings that the highlighter does not know. */
const languages = { '.conf': 'nginx', '.service': 'ini', '.example': 'ini', '.mjs': 'js', '': 'docker' };
const languageOf = (file) => languages[extname(file)] ?? extname(file).slice(1);

/** The largest file of a folder that is shown, in bytes: a dashboard is data. */
const maxBytes = 20_000;

for (const target of sources) {
  const source = join(root, target);
  const files = statSync(source).isDirectory()
    ? globSync(`${target}/**/*.*`, { cwd: root })
        .filter((file) => statSync(join(root, file)).size < maxBytes)
        .sort()
    : [target];
  const blocks = files.map((file) => `\`\`\`\`${languageOf(file)}\n${readFileSync(join(root, file), 'utf8').trimEnd()}\n\`\`\`\``);
  const body = files.length === 1 ? blocks[0] : files.map((file, index) => `## ${posix.basename(file)}\n\n${blocks[index]}`).join('\n\n');
  const isDocument = files.length === 1 && target.endsWith('.md');
  write(
    `${sourcePathOf(target)}.md`,
    isDocument
      ? readFileSync(source, 'utf8').replace(/\[([^\]]*)\]\((?!https?:)[^)]*\)/g, '$1')
      : `---\nsearch: false\n---\n\n# ${target}\n\n${body}\n`,
  );
}

const sections = services.map(({ name, text }) => {
  const reference = referencePages(JSON.parse(readFileSync(join(root, 'openapi', `${name}.json`), 'utf8')));
  for (const [page, markdown] of Object.entries(reference.pages))
    write(`api/${name}/${page}.md`, `---\noutline: [2, 2]\n---\n\n${markdown}`);
  return { name, text, tags: reference.tags };
});
write('sections.json', JSON.stringify(sections));
