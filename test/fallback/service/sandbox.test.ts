import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { createSandbox } from '../../../src/fallback/service/sandbox.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { countTurns } from '../../support/until.ts';

const sandbox = createSandbox();
after(() => sandbox.stop());

const render = (template: string, scope: Record<string, unknown> = {}) => sandbox.render(template, scope, 'template');

/** The sentence, the field and the position of an error. */
async function refusal(call: Promise<unknown>): Promise<{ detail: string; field: string | null; place: unknown }> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    assert.equal(error.status, 400);
    return { detail: error.message, field: error.field, place: error.extra };
  }
  throw new Error('It was not refused.');
}

describe('A template', () => {
  test('renders data by name', async () => {
    const scope = { chain: { name: 'c', providers: [{ name: 'a' }, { name: 'b' }] } };
    assert.equal(await render('{{ chain.name }}: {{ chain.providers | map: "name" | join: ", " }}', scope), 'c: a, b');
  });

  test('with an unknown name, filter or tag is refused with line and column [F73]', async () => {
    const faults: [string, string][] = [
      ['one\n  {{ nobody }}', 'Line 2, column 6: Undefined variable: nobody.'],
      ['{{ chain.nobody }}', 'Line 1, column 4: Undefined variable: chain.nobody.'],
      ['{% if nobody %}{% endif %}', 'Line 1, column 7: Undefined variable: nobody.'],
      ['{{ 1 | nothing }}', 'Line 1, column 1: Undefined filter: nothing.'],
      ['\n{% if true %}', 'Line 2, column 1: Tag {% if true %} not closed.'],
    ];
    for (const [template, detail] of faults) {
      const [line, column] = detail.match(/\d+/g)!.map(Number);
      assert.deepEqual(await refusal(render(template, { chain: {} })), { detail, field: 'template', place: { line, column } });
    }
  });

  test('can read no file with any tag [F73]', async () => {
    for (const tag of ['include', 'render', 'layout', 'block']) {
      const { detail } = await refusal(render(`{% ${tag} '/etc/passwd' %}`));
      assert.equal(detail, `Line 1, column 1: Tag "${tag}" not found.`);
    }
  });

  test('has no access to JavaScript behind its data', async () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      const { detail } = await refusal(render(`{{ chain.${name} }}`, { chain: {} }));
      assert.match(detail, /Undefined variable/);
    }
  });

  test('that loops endlessly is ended with a position [F73]', async () => {
    const { detail, place } = await refusal(
      render(
        '{% for a in (1..9999) %}{% for b in (1..9999) %}{% for c in (1..9999) %}{% assign x = c %}{% endfor %}{% endfor %}{% endfor %}',
      ),
    );
    assert.match(detail, /^Line 1, column \d+: The template (takes longer than 1 s|builds too large)/);
    assert.ok(typeof (place as { line: unknown }).line === 'number');
  });

  test('that grows endlessly is ended, in its output, in a capture and in a variable [F73]', async () => {
    const line = 'y'.repeat(1000);
    const grown = [
      [`{% for i in (1..100000) %}${line}{% endfor %}`, /output is larger than 1048576 bytes/],
      [`{% capture c %}{% for i in (1..100000) %}${line}{% endfor %}{% endcapture %}`, /output is larger than 1048576 bytes/],
      ['{% assign s = "aaaaaaaa" %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}', /builds too large a range/],
      ['{% for i in (1..1000000000) %}{% endfor %}', /builds too large a range/],
    ] as const;
    for (const [template, detail] of grown) assert.match((await refusal(render(template))).detail, detail);
  });
});

describe('Filters of our own', () => {
  test('shell quotes a text for a command line, and cell one for a table [F73]', async () => {
    assert.equal(await render(`{{ a | shell }} {{ b | cell }}`, { a: `it's $HOME`, b: 'a|b' }), `'it'\\''s $HOME' a\\|b`);
  });
});

describe('A YAML document', () => {
  async function read(content: string): Promise<unknown> {
    const { request } = await sandbox.readFile({ format: 'yaml', content }, 'content');
    const { name: _, ...document } = request as Record<string, unknown>;
    return document;
  }

  test('is read as plain data, with its anchors', async () => {
    assert.deepEqual(await read('a: &x [1, 2020-01-01]\nb: *x'), { a: [1, '2020-01-01'], b: [1, '2020-01-01'] });
    assert.deepEqual(await read('a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3'), { a: { k: 1, l: 2 }, b: { k: 1, l: 3 } });
  });

  test('that is invalid is refused with line and column', async () => {
    const faults: [string, RegExp][] = [
      ['a: 1\nb: [1, 2', /^Line 2, column \d+: /],
      ['a: 1\na: 2', /^Line 2, column 1: Map keys must be unique\.$/],
      ['a: !!js/function x', /^Line 1, column 4: Unresolved tag/],
      ['a: 1\n---\nb: 2', /^Line 2, column 1: There is more than one document\.$/],
      [`${'['.repeat(60)}${']'.repeat(60)}`, /more than 50 levels deep/],
    ];
    for (const [text, detail] of faults) assert.match((await refusal(read(text))).detail, detail);
  });

  test('with exponentially growing aliases is refused', async () => {
    const levels = Array.from({ length: 9 }, (_, level) => `l${level + 1}: &l${level + 1} [${Array(9).fill(`*l${level}`).join(', ')}]`);
    const { detail } = await refusal(read(['l0: &l0 [x, x]', ...levels].join('\n')));
    assert.equal(detail, 'The document grows too large when its aliases are expanded.');
    const many = `a: &a x\nb: [${Array(101).fill('*a').join(', ')}]`;
    assert.match((await refusal(read(many))).detail, /more than 100 aliases/);
    assert.match((await refusal(read('&a [*a]'))).detail, /The alias \*a is part of what it stands for/);
  });
});

describe('The sandbox', () => {
  // The library scans all keys for each key: seconds of work that it can't interrupt itself.
  const slow = Array.from({ length: 60_000 }, (_, index) => `k${index}: 1`).join('\n');

  test('ends other endless tasks at the deadline, without blocking anyone [F81]', { timeout: 120_000 }, async (t) => {
    const own = createSandbox({ deadlineMs: 300 });
    t.after(() => own.stop());
    assert.equal(await own.render('warm', {}, 'template'), 'warm');
    await countTurns(async (turn) => {
      const { detail } = await refusal(own.readFile({ format: 'yaml', content: slow }, 'content'));
      assert.equal(detail, 'The file takes longer than 300 ms.');
      assert.ok(turn() > 100, `the event loop turned ${turn()} times`);
    });
    assert.equal(await own.render('and {{ it }} goes on', { it: 'it' }, 'template'), 'and it goes on');
  });

  test('ends tasks that fill the memory, and the process continues [F81]', { timeout: 120_000 }, async (t) => {
    const own = createSandbox({ deadlineMs: 60_000, heapMib: 24 });
    t.after(() => own.stop());
    const list = `[${Array.from({ length: 120_000 }, () => '{a: b}').join(', ')}]`;
    assert.equal((await refusal(own.readFile({ format: 'yaml', content: list }, 'content'))).detail, 'The file needs too much memory.');
    assert.equal(await own.render('{{ it }}', { it: 'still here' }, 'template'), 'still here');
  });

  test('limits the tasks of a caller, and runs tasks in turns between callers [F55]', async (t) => {
    const own = createSandbox({ maxPending: 10, maxPendingPerOwner: 3 });
    t.after(() => own.stop());
    const order: string[] = [];
    const render = (owner: string) => own.render('it', {}, 'template', owner).then(() => order.push(owner));
    const answers = await Promise.allSettled(['a', 'a', 'a', 'a', 'b', 'b'].map(render));
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? 200 : (answer.reason as ServiceError).status)),
      [200, 200, 200, 503, 200, 200],
    );
    assert.deepEqual(order, ['a', 'a', 'b', 'a', 'b']);
  });

  test('refuses tasks beyond the queue limit with 503 [F81]', async (t) => {
    const own = createSandbox({ maxPending: 2 });
    t.after(() => own.stop());
    const answers = await Promise.allSettled(['a', 'b', 'c'].map((text) => own.render(text, {}, 'template')));
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : (answer.reason as ServiceError).status)),
      ['a', 'b', 503],
    );
  });
});

describe('A file to import', () => {
  test('is read, parsed and interpreted in the sandbox, whatever its format: nobody else waits, and its refusals are those of the import [F81]', async (t) => {
    const own = createSandbox({ deadlineMs: 300 });
    t.after(() => own.stop());
    assert.equal(await own.render('warm', {}, 'template'), 'warm');
    // Each name of the lists of fallbacks is compared with each pattern: half a minute of work.
    const stars = '*'.repeat(40);
    const model_list = Array.from({ length: 900 }, (_, index) => ({
      model_name: `${index}${stars}x`,
      litellm_params: { model: 'openai/*' },
    }));
    const backups = (group: number) => Array.from({ length: 20 }, (_, index) => `${group}.${index}y`);
    const fallbacks = model_list.map((_, index) => ({ [`g${index}`]: backups(index) }));
    const value = { model_list, router_settings: { fallbacks } };
    for (const content of [value, JSON.stringify(value)]) {
      await countTurns(async (turn) => {
        const { detail } = await refusal(own.readFile({ format: 'litellm', content }, 'content'));
        assert.equal(detail, 'The file takes longer than 300 ms.');
        assert.ok(turn() > 100, `the event loop turned ${turn()} times`);
      });
    }
    const two = { model_list: ['a', 'b', 'c', 'd'].map((model_name) => ({ model_name, litellm_params: { model: 'openai/m' } })) };
    const content = { ...two, router_settings: { fallbacks: [{ a: ['b'] }, { c: ['d'] }] } };
    const { field, place } = await refusal(own.readFile({ format: 'litellm', content }, 'content'));
    assert.deepEqual([field, place], ['group', { candidates: ['a', 'b', 'c', 'd'] }]);
  });
});
