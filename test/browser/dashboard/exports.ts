import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';

import { exportFormats } from '../../../src/fallback/model/targets.ts';
import { labelled } from '../../../src/fallback/web/parts/labels.ts';
import { assertAccessible, type Dashboard, heading } from '../../support/dashboard.ts';

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });

const portkey = JSON.stringify({
  strategy: { mode: 'fallback', on_status_codes: [429] },
  targets: [
    { provider: 'openai', override_params: { model: 'gpt-4o' } },
    { provider: 'anthropic', virtual_key: 'vk-1', override_params: { model: 'claude-sonnet-4-5' } },
  ],
});

/** Tests of exports, templates and imports. */
export function exportTests(dashboard: () => Dashboard): void {
  let id: string;
  before(async () => {
    id = await dashboard().chain({ name: 'exported' });
  });

  const exported = async (format: string) => (await dashboard().service.call('POST', `/chains/${id}/export?format=${format}`)).body;

  test('every format is shown with its warnings, and copied and downloaded as the service returns it', async (t) => {
    const page = await dashboard().open(t, `/chains/${id}/export`);
    const formats = page.getByRole('navigation', { name: 'Formats' }).getByRole('button');
    await formats.first().waitFor();
    assert.equal(await formats.count(), exportFormats.length);
    for (const [index, format] of exportFormats.entries()) {
      const { filename, content, warnings } = await exported(format);
      await formats.nth(index).press('Enter');
      const code = page.getByRole('region', { name: filename });
      await code.waitFor();
      assert.equal(await code.textContent(), content);
      for (const { detail } of warnings) await page.getByText(labelled(detail), { exact: true }).waitFor();
    }
    const { filename, content } = await exported(exportFormats.at(-1)!);
    await button(page, 'Copy').click();
    await page.getByText('Copied').waitFor({ state: 'attached' });
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), content);
    const coming = page.waitForEvent('download');
    await button(page, 'Download').click();
    const download = await coming;
    assert.equal(download.suggestedFilename(), filename);
    assert.equal(readFileSync(await download.path(), 'utf8'), content);
  });

  test('a template is edited next to its output; an error is shown with its line and column', async (t) => {
    const page = await dashboard().open(t, `/templates?chain=${id}`);
    const output = page.getByRole('region', { name: 'Output' });
    await output.getByText('# exported').waitFor();
    const text = page.getByLabel('Text', { exact: true });
    await text.fill('{{ chain.providers | size }} providers in {{ region }}');
    await page.getByLabel('Variables').fill('{"region": ');
    await page.getByText('this is not valid JSON').waitFor();
    await page.getByLabel('Variables').fill('{"region": "eu"}');
    await output.getByText('2 providers in eu').waitFor();
    await text.fill('first line\n  {{ chain.name | nofilter }}');
    await page
      .getByText(/Line 2, column 3/)
      .first()
      .waitFor();
    await assertAccessible(page);
    await page.getByLabel('Template', { exact: true }).selectOption({ index: 1 });
    await page.getByText('This template comes with the service.').waitFor();
    await output.waitFor();
  });

  test('a pasted configuration becomes a chain, with the findings of the import', async (t) => {
    const page = await dashboard().open(t, '/import');
    await button(page, 'Preview').click();
    await page.getByText('Paste a configuration or choose a file.').waitFor();
    const content = page.getByLabel('Content');
    await content.fill('{"no": "chain"}');
    await page.getByLabel('Format').selectOption('json');
    await button(page, 'Preview').click();
    await page.getByText('The file was not imported.').waitFor();
    await page.getByLabel('Format').selectOption('portkey');
    await content.fill(portkey);
    await page.getByLabel('Name of the chain').fill('from portkey');
    await button(page, 'Preview').click();
    await page.getByText(/The import has \d+ findings?\./).waitFor();
    await assertAccessible(page);
    await button(page, 'Import').click();
    await heading(page, 'from portkey').waitFor();
  });

  test('a file is parsed in the page only to name the line of a fault, not while it is typed', async (t) => {
    const page = await dashboard().open(t, '/import');
    const content = page.getByLabel('Content');
    await content.fill('model_list:\n  - model_name: 7\n');
    const scripts: string[] = [];
    // The parser is a script of its own.
    page.on('request', (request) => request.resourceType() === 'script' && scripts.push(request.url()));
    await content.press('Control+End');
    await page.keyboard.type('    litellm_params: { model: x }');
    await page.getByLabel('Name of the chain').fill('typed');
    assert.deepEqual(scripts, []);
    await button(page, 'Preview').click();
    await page.getByText('Line 2: model_list.0.model_name must be a string, not a number.').waitFor();
    assert.equal(scripts.length, 1);
  });

  test("if the parser can't be loaded, a fault is shown without its line", async (t) => {
    const page = await dashboard().open(t, '/import');
    await page.getByLabel('Content').fill('model_list:\n  - model_name: 7\n    litellm_params: { model: x }\n');
    await page.route('**/assets/*.js', (route) => route.abort());
    await button(page, 'Preview').click();
    await page.getByText('model_list.0.model_name must be a string, not a number.').waitFor();
    assert.equal(await page.getByText(/^Line \d/).count(), 0);
  });

  test('an answer about a file that is no longer shown changes nothing', async (t) => {
    const page = await dashboard().open(t, '/import');
    const held = Promise.withResolvers<void>();
    const isImport = (url: URL) => url.pathname === '/import';
    await page.route(isImport, async (route) => {
      await held.promise;
      await route.fallback();
    });
    const models = ['a', 'b', 'c'].map((name) => `  - model_name: ${name}\n    litellm_params: { model: openai/${name} }\n`).join('');
    const content = page.getByLabel('Content');
    await content.fill(`model_list:\n${models}router_settings:\n  fallbacks: [{ a: [c] }, { b: [c] }]\n`);
    const answered = page.waitForResponse((response) => isImport(new URL(response.url())));
    await button(page, 'Preview').click();
    await content.fill('model_list:\n  - model_name: 7\n    litellm_params: { model: x }\n');
    held.resolve();
    assert.equal((await answered).status(), 400);
    // A later answer, after which the page has handled the earlier one.
    await button(page, 'Preview').click();
    await page.getByText('Line 2: model_list.0.model_name must be a string, not a number.').waitFor();
    assert.equal(await page.getByRole('combobox', { name: 'First model group' }).count(), 0);
  });

  test('a file with several chains asks where to begin, and a fault names its line', async (t) => {
    const page = await dashboard().open(t, '/import');
    const models = ['a', 'b', 'c'].map((name) => `  - model_name: ${name}\n    litellm_params: { model: openai/${name} }\n`).join('');
    const content = page.getByLabel('Content');
    await content.fill(`model_list:\n${models}  - model_name: 7\n    litellm_params: { model: x }\n`);
    await button(page, 'Preview').click();
    await page.getByText('Line 8: model_list.3.model_name must be a string, not a number.').waitFor();
    await content.fill(`model_list:\n${models}router_settings:\n  fallbacks: [{ a: [c] }, { b: [c] }]\n`);
    await button(page, 'Preview').click();
    const group = page.getByRole('combobox', { name: 'First model group' });
    await page.getByText('The file has several chains: choose where the one to import begins.').waitFor();
    assert.deepEqual(await group.locator('option').allTextContents(), ['Choose a group', 'a', 'b', 'c']);
    await assertAccessible(page);
    await group.selectOption('b');
    await button(page, 'Preview').click();
    await page.getByText('b: 2 providers').waitFor();
    await page.getByText('Review these warnings').waitFor();
    await button(page, 'Import').click();
    await heading(page, 'b').waitFor();
  });

  test('a file that cannot be read is reported, and what was entered stays', async (t) => {
    const page = await dashboard().open(t, '/import');
    await page.getByLabel('Content').fill('entered');
    await page.evaluate("Blob.prototype.text = () => Promise.reject(new DOMException('gone', 'NotReadableError'))");
    await page.getByLabel('File to import').setInputFiles({ name: 'chain.yaml', mimeType: 'text/yaml', buffer: Buffer.from('a: 1') });
    await page.getByText('chain.yaml could not be read.').waitFor();
    assert.equal(await page.getByLabel('Content').inputValue(), 'entered');
  });

  test('a selected file is read and its format detected', async (t) => {
    const page = await dashboard().open(t, '/import');
    const { content } = await exported('yaml');
    await page.getByLabel('File to import').setInputFiles({ name: 'chain.yaml', mimeType: 'text/yaml', buffer: Buffer.from(content) });
    await page.waitForFunction(`document.querySelector('textarea').value !== ''`);
    assert.equal(await page.getByLabel('Format').inputValue(), 'yaml');
    await page.getByLabel('Name of the chain').fill('from a file');
    await button(page, 'Preview').click();
    await button(page, 'Import').click();
    await heading(page, 'from a file').waitFor();
  });
}
