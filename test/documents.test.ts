import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { tools } from '../src/handoff/mcp/tools.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The patterns of `.gitignore`, as globs: packages, data, builds and what other scripts generate are no files of the project. */
const ignored = read('.gitignore')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.replace(/\/$/, ''))
  .flatMap((line) => (line.includes('/') ? line.replace(/^\//, '') : `**/${line}`))
  .flatMap((pattern) => [pattern, `${pattern}/**`]);

/** All files of the project whose path matches. */
function projectFiles(pattern: string): string[] {
  return globSync(pattern, { cwd: root, exclude: ignored }).sort();
}

/** The rows of what the specification leaves open, which a test names in its title: `... [H6, F1]`. */
const rowsInTitle = /\btest\(\s*(['"`])(?:\\.|(?!\1)[^\\])*? \[([HF]\d+(?:, [HF]\d+)*)\]\1/g;

describe('What the specification leaves open', () => {
  const named = projectFiles('{test,interop}/**/*.test.ts').flatMap((file) =>
    [...read(file).matchAll(rowsInTitle)].flatMap(([, , ids]) => ids!.split(', ')),
  );

  for (const [page, letter] of [
    ['docs/silences-handoff.md', 'H'],
    ['docs/silences-fallback.md', 'F'],
  ] as const) {
    test(`${page}: each row has an id of its own and a decision, and the title of a test ends with that id`, () => {
      const rows = [...read(page).matchAll(/^\| (?!Id |---)(.*) \|$/gm)].map(([, cells]) =>
        cells!.split(/(?<!\\)\| /).map((cell) => cell.trim()),
      );
      assert.ok(rows.length > 40, `${rows.length} rows`);
      const faulty = rows.filter(
        ([id = '', subject, decision, ...others]) => !new RegExp(`^${letter}\\d+$`).test(id) || !subject || !decision || others.length > 0,
      );
      assert.deepEqual(faulty, [], `A row is | ${letter}12 | subject | decision |: see "Recipes" in CONTRIBUTING.md.`);
      const ids = rows.map(([id]) => id!);
      assert.deepEqual(
        {
          twice: ids.filter((id, index) => ids.indexOf(id) !== index),
          withoutTest: ids.filter((id) => !named.includes(id)),
          withoutRow: named.filter((id) => id.startsWith(letter) && !ids.includes(id)),
        },
        { twice: [], withoutTest: [], withoutRow: [] },
        `Each id is in one row of ${page}, and ends the title of a test: 'sentence [${letter}12]'.`,
      );
    });
  }
});

test('CHANGELOG.md has one entry for each subject', () => {
  const subjects = [...read('CHANGELOG.md').matchAll(/^- \*\*([^*]+)\*\*/gm)].map(([, subject]) => subject);
  assert.deepEqual(
    subjects.filter((subject, index) => subjects.indexOf(subject) !== index),
    [],
  );
});

describe('docs/agents.md', () => {
  test('lists every tool that clients of MCP get, in their order', () => {
    const listed = [...read('docs/agents.md').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    assert.deepEqual(listed, Object.keys(tools));
  });
});

describe('docs/recipes.md', () => {
  const recipes = read('docs/recipes.md');

  test('quotes messages that the services and their programs print', () => {
    const source = projectFiles('src/**/*.ts').map(read).join('\n');
    const [, table = ''] = recipes.split('<!-- messages -->');
    const quoted = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message = '']) => message);
    assert.ok(quoted.length >= 10);
    assert.deepEqual(
      quoted.filter((message) => !source.includes(message)),
      [],
    );
  });

  test('has commands and options of service-cli that exist', () => {
    const reference = read('docs/cli.md');
    const commands = [...recipes.matchAll(/npx service-cli ((?:[a-z][a-z-]* ?)+)(.*)/g)];
    assert.ok(commands.length >= 5);
    for (const [line, words = '', rest = ''] of commands) {
      const section = new RegExp(`^#+ service-cli ${words.trim()}(?: &lt;.*)?$(.*?)(?=^#)`, 'ms').exec(`${reference}\n#`);
      assert.ok(section !== null, line);
      for (const [option] of rest.matchAll(/--[a-z-]+/g)) assert.ok(section[1]!.includes(`\`${option} `), `${option} in ${line}`);
    }
  });
});

describe('The records of decisions', () => {
  test('the dependencies have a row for exactly the packages of package.json', () => {
    const { dependencies, devDependencies } = JSON.parse(read('package.json'));
    const record = read('docs/decisions/0013-dependencies.md');
    const rows = [...record.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name);
    assert.deepEqual(rows.sort(), [...Object.keys(dependencies), ...Object.keys(devDependencies)].sort());
  });

  test('every folder with a lock file of its own is listed', () => {
    const record = read('docs/decisions/0013-dependencies.md');
    const listed = [...record.matchAll(/^- `([^`]+)\/`:/gm)].map(([, folder = '']) => folder);
    const folders = globSync('{interop,{bench,examples,packages,tools}/**}/package-lock.json', {
      cwd: root,
      exclude: ['**/node_modules/**'],
    });
    assert.deepEqual(listed.sort(), folders.map(dirname).sort());
  });

  test('every decision record is listed and has its four parts', () => {
    const folder = join(root, 'docs/decisions');
    const index = readFileSync(join(folder, 'README.md'), 'utf8');
    const records = readdirSync(folder).filter((name) => name !== 'README.md');
    assert.ok(records.length > 0);
    for (const record of records) {
      assert.ok(index.includes(`](${record})`), record);
      const text = readFileSync(join(folder, record), 'utf8');
      const parts = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
      assert.deepEqual(
        parts,
        record.endsWith('-dependencies.md')
          ? ['Context', 'Decision', 'Consequences']
          : ['Context', 'Decision', 'Alternatives', 'Consequences'],
        record,
      );
    }
  });
});

describe('Markdown files', () => {
  const files = projectFiles('**/*.md');

  test('there are some', () => {
    assert.ok(files.includes('ARCHITECTURE.md'));
  });

  for (const file of files) {
    test(`${file}: every relative link points to an existing file and heading`, () => {
      const missing = linksOf(read(file)).filter((link) => !leadsSomewhere(file, link));
      assert.deepEqual(missing, []);
    });

    // Another `node` in the path may be too old to run TypeScript.
    test(`${file} runs TypeScript by the Node of the project`, () => {
      assert.deepEqual(read(file).match(/(?<!npx )(?<![\w/.-])node (?:--\S+ )*[^\s`]+\.ts/g) ?? [], []);
    });

    test(`${file} contains no path of a particular machine`, () => {
      const homes = read(file).match(/(?:\/home\/\w+|\/Users\/\w+|\/root\/|\/work\/|[A-Z]:\\Users\\)[^\s`)]*/g) ?? [];
      assert.deepEqual(homes, []);
    });
  }
});

/** The relative targets of links and images in a Markdown text, outside of code. */
function linksOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, (span) => span.replace(/[[\]()]/g, ''));
  const inline = [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)].map(([, target]) => target!);
  const references = [...prose.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)].map(([, target]) => target!);
  return [...inline, ...references].filter((target) => !/^[a-z][a-z+.-]*:/i.test(target));
}

function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', heading] = link.split('#', 2);
  const target = path === '' ? file : relative(root, join(root, path.startsWith('/') ? '' : dirname(file), decodeURIComponent(path)));
  if (target.startsWith('..') || !existsSync(join(root, target))) return false;
  if (heading === undefined || !target.endsWith('.md')) return true;
  return headingsOf(read(target)).includes(heading);
}

/** The anchors of a Markdown text's headings, as code hosts generate them. */
function headingsOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '');
  return [...prose.matchAll(/^#{1,6} +(.+)$/gm)].map(([, title]) =>
    title!
      .replace(/`/g, '')
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

test('The plan in ARCHITECTURE.md names each file of the kit and each folder of tools', () => {
  const [, plan = ''] = /\n## The plan\n+```\n(.*?)\n```/s.exec(read('ARCHITECTURE.md')) ?? [];
  const files = projectFiles('src/kit/*.ts').map((file) => file.replace('src/kit/', ''));
  const folders = readdirSync(join(root, 'tools')).map((name) => `tools/${name}/`);
  assert.deepEqual(
    [...files, ...folders].filter((name) => !new RegExp(`(?<![\\w-])${name}`).test(plan)),
    [],
  );
});

test('The kit names nothing of one service', () => {
  // Tenants are not among them: those who move rows and limit callers by owner are told what a tenant is.
  const nouns =
    /\b(agent_id|chains?|claim(s|ed|ing)?|deliver(y|ies)|hand-?offs?|hitl|leased?|leases|packets?|prompts?|search_index|webhooks?|x-ratelimit-tier)\b/gi;
  const found = globSync('**/*.{ts,tsx}', { cwd: join(root, 'src/kit'), exclude: ['**/dist/**'] }).flatMap((file) =>
    [...readFileSync(join(root, 'src/kit', file), 'utf8').matchAll(nouns)].map(([noun]) => `src/kit/${file}: ${noun}`),
  );
  assert.deepEqual(found, []);
});

test('The rules tell of no header, argument or option by which one way in names something', () => {
  const words = /\b(X-[A-Z][\w-]+|If-Match|Idempotency-Key|MCP|A2A|service-cli)\b|\s--[a-z]/;
  const found = globSync('src/handoff/rules/**/*.ts', { cwd: root }).flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => words.test(line.replace(/^\s*(\/\*\*|\*|\/\/).*|\s\/\/ .*/, '')))
      .map((line) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(found, []);
});

test('Each block of a framework in docs/approvals.md is part of a program of fewer than 60 lines that a test runs, and has fewer than fifteen', () => {
  const [, section = ''] = /\n## In frameworks\n(.*?)\n## /s.exec(read('docs/approvals.md')) ?? [];
  const blocks = [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, text = '']) => text);
  const programs = ['examples/python/approve_*.py', 'interop/approve-*.ts']
    .flatMap(projectFiles)
    .filter((file) => !file.endsWith('approve-scripted.ts'))
    .map(read);
  assert.equal(blocks.length, programs.length);
  for (const program of programs) assert.ok(program.trimEnd().split('\n').length < 60, program);
  for (const block of blocks) {
    assert.ok(block.split('\n').filter((line) => line.trim() !== '').length < 15, block);
    assert.equal(programs.filter((program) => program.includes(block.trim())).length, 1, block);
  }
});
