import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';

import { exportFormats } from '../../../src/fallback/model/targets.ts';
import { type Dashboard, go } from '../../support/dashboard.ts';

/** Texts that would run a script, load something or change the page if one of them were taken for markup in its place. */
const texts = [
  '<img src=/owned onerror="window.owned=1">',
  '"><script>window.owned=1</script>',
  `'><svg onload=window.owned=1>`,
  '</style><style>*{display:none}</style>',
  '{{window.owned=1}}',
];

/** What a page has that the dashboard itself never makes. */
const foreign = `JSON.stringify({
  owned: window.owned ?? null,
  elements: [...document.querySelectorAll('img[src="/owned"], iframe, script:not([src]), [onerror], [onload], a[href^="javascript:" i]')].map(({ outerHTML }) => outerHTML),
})`;

const heading = (page: Page) => page.getByRole('heading', { level: 1 });

/** Tests that stored markup is shown as text. The page's own policy is part of them: a violation is an error in the console. */
export function markupTests(dashboard: () => Dashboard): void {
  for (const text of [texts.join(''), 'javascript:window.owned=1//']) {
    test(`${text.slice(0, 40)} in every field of a chain is shown as text on every page`, async (t) => {
      const [first, second] = [`a ${text}`, `b ${text}`];
      const model = text.replaceAll(' ', '/');
      const id = await dashboard().chain({
        name: text,
        description: text,
        providers: [
          { name: first, model_id: `openai/${model}`, api_key_env: 'OPENAI_API_KEY', metadata: { [text]: text } },
          { name: second, model_id: model, api_base: `https://llm.example.com/${encodeURIComponent(text)}` },
        ],
        fallback_rules: [{ condition: 'rate_limit', action: 'retry', max_retries: 2, providers: [first] }],
        metadata: { [text]: text },
      });
      const a = await dashboard().run(id, { prompt_count: 5, seed: 1 });
      const b = await dashboard().run(id, { prompt_count: 5, seed: 1, preset: 'blackout' });
      const page = await dashboard().open(t, '/chains');
      const isClean = async (where: string) =>
        assert.deepEqual(JSON.parse(await page.evaluate<string>(foreign)), { owned: null, elements: [] }, where);
      const shown = async (path: string, ready: () => Promise<unknown>) => {
        await go(page, path);
        await heading(page).waitFor();
        await ready();
        await isClean(path);
      };
      const visible = (what: string) => page.getByText(what).last().waitFor();
      await shown('/chains', () => visible(text));
      await shown(`/chains/${id}`, () => visible(first));
      await shown(`/chains/${id}/edit`, () => page.getByRole('textbox').first().waitFor());
      await shown(`/chains/${id}/what-if`, () => visible(first));
      await shown(`/chains/${id}/tests`, () => visible('blackout'));
      await shown(`/results/${a}`, () => visible(first));
      await shown(`/compare?a=${a}&b=${b}`, () => visible('Latency p95'));
      const output = page.getByRole('region', { name: 'Output' });
      await shown(`/templates?chain=${id}`, () => output.getByText(text).first().waitFor());
      const formats = page.getByRole('navigation', { name: 'Formats' }).getByRole('button');
      await shown(`/chains/${id}/export`, () => formats.first().waitFor());
      for (const [index, format] of exportFormats.entries()) {
        const { body } = await dashboard().service.call('POST', `/chains/${id}/export?format=${format}`);
        await formats.nth(index).press('Enter');
        const code = page.getByRole('region', { name: body.filename });
        await code.waitFor();
        assert.equal(await code.textContent(), body.content);
        await isClean(format);
      }
    });
  }
}
