import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertAccessible, assertFits, button, type Dashboard, heading, type SlowProvider, scrollToEnd } from '../../support/dashboard.ts';
import { startGateway } from '../../support/gateway.ts';

/** Tests of the failure paths of a chain, and of chain tests. */
export function testTests(dashboard: () => Dashboard, provider: () => SlowProvider): void {
  const read = async (id: string) => (await dashboard().service.call('GET', `/test-results/${id}`)).body;

  const isStream = ({ pathname }: URL) => /^\/test-results\/[^/]+\/events$/.test(pathname);
  const isResult = ({ pathname }: URL) => /^\/test-results\/[^/]+$/.test(pathname);

  test('the routing table is a grid with arrow keys; a cell shows its path with waits and the provider that answers', async (t) => {
    const id = await dashboard().chain({ name: 'asked about' });
    const page = await dashboard().open(t, `/chains/${id}/what-if`);
    const cell = button(page, /retry 3×\s?: gpt-4o fails with rate limit, 3 retries, then claude is tried \(a rule says so\)/);
    await cell.waitFor();
    assert.equal(await page.getByRole('table').getByRole('button').count(), 28, '2 providers, 14 conditions');
    const steps = page.locator('ol[class*=path] > li');
    await cell.press('Enter');
    await page.getByText('claude answers').waitFor();
    const text = (await steps.allTextContents()).join(' | ');
    assert.match(text, /gpt-4o.*attempt 1.*after up to 500 ms.*attempt 2.*after up to 1 s.*attempt 4.*at once.*claude.*answers/);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('The prompt fails').waitFor();
    assert.match(page.url(), /provider=claude&condition=timeout/);
    await page.getByText('Longest prompt').waitFor();
  });

  test('a path that cannot be read is reported, with a button to try again', async (t) => {
    const id = await dashboard().chain({ name: 'not explained' });
    const page = await dashboard().open(t, `/chains/${id}/what-if`);
    const asks = (url: URL) => url.pathname.endsWith('/routing') && url.search !== '';
    await page.route(asks, (route) => route.fulfill({ status: 409, json: { detail: 'It is broken.', code: 'CONFLICT' } }));
    await button(page, /gpt-4o fails with rate limit/).click();
    await page.getByText('The path could not be loaded.').waitFor();
    await page.unroute(asks);
    await button(page, 'Try again').click();
    await page.getByText('claude answers').waitFor();
  });

  test('a simulation shows the verdict, checks, charts, scenarios and a waterfall of each prompt', async (t) => {
    const id = await dashboard().chain({ name: 'simulated' });
    const page = await dashboard().open(t, `/chains/${id}/tests`);
    await page.getByText('Never tested').waitFor();
    await page.getByLabel('Prompts', { exact: true }).fill('0');
    await button(page, 'Run').click();
    await page.getByText('Must be at least 1.').waitFor();
    await page.getByLabel('Prompts', { exact: true }).fill('30');
    await page.getByLabel('Seed').fill('7');
    await button(page, 'Run').click();
    await heading(page, /Test of simulated/).waitFor();
    const result = await read(page.url().split('/').at(-1)!);
    assert.equal(result.seed, 7);
    await heading(page, `Test of simulated ${result.verdict}`).waitFor();
    for (const { detail } of result.checks) await page.getByText(detail).first().waitFor();
    await page.getByText(`${result.success_count} of 30 prompts`).waitFor();
    await page.getByRole('list', { name: 'Latency percentiles' }).waitFor();
    assert.match((await page.getByRole('list', { name: 'Prompts served by provider' }).textContent()) ?? '', /gpt-4o.*claude/s);

    const scenarios = result.results.map(({ scenario }: { scenario: string }) => scenario) as string[];
    const scenario = scenarios.find((name) => name.includes('rate_limit'))!;
    const own = scenarios.filter((name) => name === scenario).length;
    // The page names conditions by words.
    const shownName = scenario.replace('rate_limit', 'rate limit');
    await button(page, new RegExp(`^${shownName}.*slowest`)).click();
    await page.getByRole('heading', { level: 2, name: `Prompts: ${shownName}` }).waitFor();
    const shown = page.getByRole('region', { name: `${own} prompts` });
    await shown.waitFor();
    assert.ok(
      (await shown.boundingBox())!.height <= (await shown.getByRole('list').boundingBox())!.height,
      'no room below the last prompt',
    );
    await button(page, 'Show all').click();
    const prompts = page.getByRole('region', { name: '30 prompts' });
    await prompts.getByRole('button').first().press('Enter');
    await prompts.getByRole('table').waitFor();
    assert.ok((await prompts.locator('[class*=waterfall] > *').count()) > 0, 'the waterfall has bars');
    await assertAccessible(page);
  });

  test('two tests are compared by their figures, without their prompts; faults of their own are named', async (t) => {
    const id = await dashboard().chain({ name: 'compared' });
    const ids: string[] = [];
    for (const condition of ['timeout', 'rate_limit']) {
      const body = { faults: [{ provider: 'gpt-4o', condition, probability: 1 }], prompt_count: 5, seed: 1 };
      const answer = await dashboard().service.call('POST', `/chains/${id}/test`, { body });
      assert.equal(answer.status, 201, answer.text);
      ids.push(answer.body.id);
    }
    const asked: URL[] = [];
    const page = await dashboard().open(t, '/chains');
    page.on('request', (request) => asked.push(new URL(request.url())));
    await page.goto(page.url().replace('/chains', `/compare?a=${ids[0]}&b=${ids[1]}`));
    await page.getByText('both have faults of their own, which may not be the same').waitFor();
    await page.getByRole('table', { name: 'Figures' }).waitFor();
    const results = asked.filter(isResult);
    assert.ok(results.length >= 2);
    for (const { search } of results) assert.match(search, /[?&]prompts=false\b/);
  });

  test('no figure of a test whose prompts were lost is better, not even one that is lower because they were', async (t) => {
    const id = await dashboard().chain({ name: 'lost' });
    const ids: string[] = [];
    for (const [preset, prompt_count, verdict] of [
      ['primary_down', 3, 'pass'],
      ['blackout', 3, 'lost_as_ruled'],
      ['blackout', 1, 'lost_as_ruled'],
    ]) {
      const answer = await dashboard().service.call('POST', `/chains/${id}/test`, { body: { preset, prompt_count, seed: 1 } });
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.body.verdict, verdict);
      ids.push(answer.body.id);
    }
    const page = await dashboard().open(t, `/compare?a=${ids[0]}&b=${ids[1]}`);
    const row = page.getByRole('table', { name: 'Figures of both tests' }).getByRole('row');
    await row.filter({ hasText: /^Served\d.*worse$/ }).waitFor();
    await row.filter({ hasText: /^Served by fallback.*−/ }).waitFor();
    assert.deepEqual(await row.filter({ hasText: 'better' }).allTextContents(), []);
    await page.goto(page.url().replace(/compare.*/, `compare?a=${ids[1]}&b=${ids[2]}`));
    await row.filter({ hasText: /^Lost31−2/ }).waitFor();
    assert.deepEqual(await row.filter({ hasText: 'better' }).allTextContents(), []);
  });

  test('custom faults can be entered, and an error is shown next to its field', async (t) => {
    const id = await dashboard().chain({ name: 'faulted' });
    const page = await dashboard().open(t, `/chains/${id}/tests`);
    await page.getByLabel('Faults').selectOption('');
    await page.getByLabel('Fails with').selectOption('timeout');
    await page.getByLabel('Probability').fill('2');
    await button(page, 'Run').click();
    const fault = page.getByText(/^Must be .* 1/);
    await fault.waitFor();
    await button(page, 'Add a fault').click();
    await fault.waitFor({ state: 'detached' });
    await button(page, 'Run').click();
    await fault.waitFor();
    // The other fault is now the first one.
    await button(page, 'Remove fault 1').click();
    await fault.waitFor({ state: 'detached' });
    await page.getByLabel('Fails with').selectOption('timeout');
    await page.getByLabel('Probability').fill('1');
    await button(page, 'Run').click();
    await heading(page, /Test of faulted/).waitFor();
    const { preset, results } = await read(page.url().split('/').at(-1)!);
    assert.equal(preset, null);
    assert.ok(results.every((prompt: { served_by: string }) => prompt.served_by === 'claude'));
  });

  test('a live test shows its progress by stream, or by polling if the stream breaks; cancelled, it keeps its finished prompts', async (t) => {
    const id = await dashboard().chain({
      name: 'slow',
      providers: [{ name: 'slow', model_id: 'slow-1', provider: 'openai', api_base: provider().apiBase }],
      fallback_rules: [],
    });
    const page = await dashboard().open(t, `/chains/${id}/tests`, 'with a clock');
    const whole: string[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (isResult(url) && !url.search.includes('prompts=false')) whole.push(url.href);
    });
    await page.getByLabel('Mode').selectOption('live');
    await page.getByText(/^This test makes at most \d+ calls\. Real calls reach the providers and may cost money\./).waitFor();
    await page.getByLabel('Prompts', { exact: true }).fill('6');
    const stream = page.waitForResponse((answer) => isStream(new URL(answer.url())));
    await button(page, 'Run').click();
    await page.getByText('0 of 6 prompts done').waitFor();
    assert.equal((await stream).headers()['content-type'], 'text/event-stream');
    // Polling always answers that no prompt is done, so all progress that the page shows came from the stream.
    const json = await read(page.url().split('/').at(-1)!);
    await page.route(isResult, (route) => route.fulfill({ json }));
    await provider().answer();
    await page.getByText('1 of 6 prompts done').waitFor();
    await assertAccessible(page);

    await page.route(isStream, (route) => route.abort('connectionrefused'));
    const cut = page.waitForEvent('requestfailed', (request) => isStream(new URL(request.url())));
    dashboard().service.fallback.app.server.closeAllConnections();
    await page.clock.fastForward(4000);
    await cut;
    await provider().answer();
    await page.unroute(isResult);
    await page.clock.fastForward(2000);
    await page.getByText('2 of 6 prompts done').waitFor();
    // The test of a dead instance looks like this until its lease expires.
    await page.clock.fastForward(15_000);
    await page.getByText('No prompt ended in the last 15 s.').waitFor();

    assert.deepEqual(whole, [], 'the prompts are not read while the test runs');
    await button(page, 'Cancel').click();
    await page.getByText('The test was cancelled.').waitFor();
    await heading(page, 'Test of slow cancelled').waitFor();
    await page.getByRole('region', { name: '2 prompts' }).waitFor();
    assert.ok(whole.length > 0);
    assert.equal((await read(page.url().split('/').at(-1)!)).status, 'cancelled');
  });

  test('a rehearsal shows each scene beside what was expected, and what the export does otherwise beside what it explains [F65]', async (t) => {
    const model = (name: string) => ({ model_name: name, litellm_params: { model: `openai/${name}`, timeout: 3 } });
    const content = {
      model_list: [model('gpt-4o'), model('claude')],
      router_settings: {
        ...{ num_retries: 0, disable_cooldowns: true, enable_pre_call_checks: true },
        ...{ fallbacks: [{ 'gpt-4o': ['claude'] }], context_window_fallbacks: [{ 'gpt-4o': ['claude'] }] },
      },
    };
    const imported = await dashboard().service.call('POST', '/import?format=litellm', { body: { content } });
    const { id } = imported.body.chain;
    const { token } = (await dashboard().service.call('GET', `/chains/${id}/rehearsal-token`)).body;
    const base = `${dashboard().address}/rehearsal/${token}`;
    // It ends a prompt on status 400, which the chain does not.
    const upstreams = ['gpt-4o', 'claude'].map((name) => ({ base: `${base}/${name}/v1`, retries: new Map() }));
    const gateway = await startGateway(t, upstreams);

    const page = await dashboard().open(t, `/chains/${id}/what-if?provider=claude&condition=context_length`);
    await page.getByText('The imported file behaves otherwise.', { exact: true }).waitFor();
    const marked = page.getByRole('button', { name: /the imported file differs/ });
    const cells = (await marked.allTextContents()).map((text) => /: (\S+ fails with [^,]+)/.exec(text)?.[1]);
    assert.deepEqual(
      cells,
      ['interrupted', 'context length', 'content filter', 'invalid response'].flatMap((condition) =>
        // Behind the last provider there is nothing that LiteLLM would not call after a refusal.
        (condition === 'content filter' ? ['gpt-4o'] : ['gpt-4o', 'claude']).map((provider) => `${provider} fails with ${condition}`),
      ),
      'the findings are at the providers that they name',
    );

    await page.goto(page.url().replace(/what-if.*/, 'rehearse'));
    // What the gateway does with streams matters to streamed answers only.
    const ofStreams = page.getByText('If a stream ends without its final event');
    await page.getByText(/^The gateway will differ in /).waitFor();
    assert.equal(await ofStreams.count(), 0);
    await page.getByLabel('Answers').selectOption('both');
    await ofStreams.first().waitFor();
    await page.getByLabel('Answers').selectOption('whole');
    await ofStreams.first().waitFor({ state: 'detached' });
    await page.getByLabel('Address of the gateway').fill(gateway.url);
    await button(page, 'Rehearse').click();
    await heading(page, /Test of gpt-4o differs/).waitFor();
    const rows = page.getByRole('table', { name: 'Scenes, differing ones first' }).getByRole('row');
    const texts = await rows.allTextContents();
    assert.match(texts[0]!, /Scene.*The chain says.*The gateway did.*Result/);
    assert.match(texts.find((text) => /^context length/.test(text))!, /gpt-4oclaudegpt-4oerrordiffers$/);
    const differing = texts.map((text) => text.endsWith('differs'));
    assert.ok(differing[1] && !differing.at(-1));
    assert.deepEqual(
      differing.slice(1),
      differing.slice(1).toSorted((one, other) => Number(other) - Number(one)),
    );
    const difference = (name: RegExp) => page.getByRole('listitem').filter({ hasText: name });
    assert.match((await difference(/400 \(content filter\)/).textContent())!, /Explained by the export: LiteLLM returns an empty answer/);
    // The import has a finding about it, which is none of the export.
    assert.doesNotMatch((await difference(/400 \(context length\)/).textContent())!, /Explained/);
    await assertAccessible(page);
    await page.setViewportSize({ width: 390, height: 900 });
    await assertFits(page);
  });

  test('outages in time are a strip for each provider, read by keyboard, pointer and as a table, in both schemes and on a phone [F124]', async (t) => {
    const id = await dashboard().chain({ name: 'timed', cooldown: { allowed_fails: 0, window_ms: 30_000, seconds: 30 } });
    const outages = [{ provider: 'gpt-4o', from_s: 10, to_s: 70, condition: 'server_error' }];
    const body = { seed: 1, timeline: { rate_per_minute: 60, seconds: 120, outages } };
    const test_ = await dashboard().run(id, body);
    const page = await dashboard().open(t, `/results/${test_}`);
    await heading(page, /Test of timed/).waitFor();
    const chart = page.getByRole('region', { name: 'What the chain does', exact: true });
    await chart.getByText('0 s: gpt-4o answers').waitFor();
    const slider = page.getByRole('slider', { name: 'Second' });
    for (let second = 0; second < 10; second += 1) await slider.press('ArrowRight');
    assert.match(
      (await slider.getAttribute('aria-valuetext'))!,
      /^10 s: gpt-4o fails: server error, .*claude answers; left out: gpt-4o until 4\d/,
    );
    await chart.getByText(/^10 s: gpt-4o fails: server error/).waitFor();
    const strip = chart.locator('svg').first();
    const { width, height } = (await strip.boundingBox())!;
    await strip.hover({ position: { x: (width * 20.5) / 120, y: height / 2 } });
    await chart.getByText(/^20 s: claude answers; left out: gpt-4o/).waitFor();
    await chart.getByText(/^gpt-4o answered again at 7\d/).waitFor();
    await page.getByText('What the chain does, as a table').click();
    const rows = page.getByRole('table', { name: 'What the chain does, by seconds' }).getByRole('row');
    assert.match((await rows.nth(1).textContent())!, /^0 to 9gpt-4o answers$/);
    await assertAccessible(page);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [1280, 320]) {
        await page.setViewportSize({ width: size, height: 900 });
        await assertFits(page);
        await assertAccessible(page);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/timeline-${colorScheme}-${size}.png`, fullPage: true });
      }
    }
  });

  test('outages in time are started from the form, which shows what is refused beside its field, and are named in the history [F124]', async (t) => {
    const id = await dashboard().chain({ name: 'started in time' });
    const page = await dashboard().open(t, `/chains/${id}/tests`);
    await page.getByLabel('Faults').selectOption({ label: 'Outages in time: providers fail for a while' });
    await page.getByLabel('Prompts', { exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel(/^To\b/).fill('10');
    await button(page, 'Run').click();
    await page.getByText('Must be greater than the begin, since the outage ends before it.').waitFor();
    await page.getByLabel(/^To\b/).fill('20');
    await page.getByLabel('Duration').fill('30');
    await button(page, 'Add an outage').click();
    await button(page, 'Remove outage 2').click();
    await assertAccessible(page);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [320, 1280]) {
        await page.setViewportSize({ width: size, height: 900 });
        await assertFits(page);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/form-${colorScheme}-${size}.png`, fullPage: true });
      }
    }
    await button(page, 'Run').click();
    await page.getByRole('region', { name: 'What the chain does', exact: true }).waitFor();
    const { timeline } = await read(page.url().split('/').at(-1)!);
    assert.deepEqual(timeline.outages, [{ provider: 'gpt-4o', condition: 'server_error', from_s: 10, to_s: 20 }]);
    await page.goto(page.url().replace(/results.*/, `chains/${id}/tests`));
    await page.getByText('simulate, a timeline').waitFor();
    await page.getByLabel('Mode').selectOption({ label: 'Drill: real calls, injected faults' });
    assert.deepEqual(
      (await page.getByLabel('Faults').getByRole('option').allTextContents()).filter((text) => /time:/.test(text)),
      [],
    );
  });

  test('a rehearsal of outages keeps the cool-downs of the gateway, and shows its prompts by second [F124, F159]', async (t) => {
    const id = await dashboard().chain({ name: 'cooled', cooldown: { allowed_fails: 0, window_ms: 30_000, seconds: 30 } });
    const { token } = (await dashboard().service.call('GET', `/chains/${id}/rehearsal-token`)).body;
    const base = `${dashboard().address}/rehearsal/${token}`;
    const gateway = await startGateway(t, [{ base: `${base}/gpt-4o/v1`, retries: new Map() }]);
    const page = await dashboard().open(t, `/chains/${id}/rehearse`);
    await page.getByText('disable_cooldowns: true').waitFor();
    await page.getByLabel('Failures').selectOption({ label: 'outages in time' });
    await page.getByText('disable_cooldowns: true').waitFor({ state: 'detached' });
    await page.getByText('allowed_fails: 0').waitFor();
    await page.getByLabel('Address of the gateway').fill(gateway.url);
    await page.getByLabel('Duration').fill('1');
    await page.getByLabel(/^From\b/).fill('0');
    await page.getByLabel(/^To\b/).fill('1');
    await button(page, 'Rehearse').click();
    await heading(page, /Test of cooled differs/).waitFor();
    await page.getByText('0 of 1 prompt agree.').waitFor();
    const rows = page.getByRole('table', { name: 'Prompts, differing ones first' }).getByRole('row');
    assert.match((await rows.allTextContents())[0]!, /^Second.*The chain says/);
  });

  test('a rehearsal of outages says which rule of the export explains a cool-down that the gateway does not have, in both schemes, wide and narrow [F167]', async (t) => {
    const id = await dashboard().chain({ name: 'forgotten', cooldown: { allowed_fails: 0, window_ms: 30_000, seconds: 30 } });
    const { token } = (await dashboard().service.call('GET', `/chains/${id}/rehearsal-token`)).body;
    const base = `${dashboard().address}/rehearsal/${token}`;
    const upstreams = ['gpt-4o', 'claude'].map((name) => ({ base: `${base}/${name}/v1`, retries: new Map() }));
    const gateway = await startGateway(t, upstreams);
    const page = await dashboard().open(t, `/chains/${id}/rehearse`);
    await page.getByLabel('Gateway', { exact: true }).selectOption({ label: 'Portkey' });
    await page.getByLabel('Failures').selectOption({ label: 'outages in time' });
    await page.getByLabel('Address of the gateway').fill(gateway.url);
    await page.getByLabel('Duration').fill('4');
    await page.getByLabel(/^From\b/).fill('0');
    await page.getByLabel(/^To\b/).fill('2');
    await button(page, 'Rehearse').click();
    await heading(page, /Test of forgotten differs/).waitFor();
    const difference = page.getByRole('listitem').filter({ hasText: /the gateway called gpt-4o, which the chain leaves out until/ });
    assert.match((await difference.textContent())!, /Explained by the export: The format can't represent cool-downs: a provider/);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [2560, 1280, 320]) {
        await page.setViewportSize({ width: size, height: 900 });
        await assertFits(page);
        await assertAccessible(page);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/explained-${colorScheme}-${size}.png`, fullPage: true });
      }
    }
  });

  test("the history lists a chain's tests, newest first, and compares two of them", async (t) => {
    const id = await dashboard().chain({ name: 'compared' });
    for (let older = 0; older < 19; older += 1) await dashboard().run(id, { preset: 'flap', prompt_count: 1 });
    await dashboard().run(id, { preset: 'healthy', prompt_count: 4, seed: 1 });
    await dashboard().run(id, { preset: 'blackout', prompt_count: 4, seed: 1 });
    const page = await dashboard().open(t, `/chains/${id}/tests`);
    const rows = page.getByRole('table', { name: 'Tests, newest first' }).getByRole('row');
    await rows.nth(2).waitFor();
    assert.match((await rows.nth(1).textContent()) ?? '', /simulate, blackout.*4.*0 %/);
    assert.match((await rows.nth(2).textContent()) ?? '', /pass.*simulate, healthy.*4.*100 %/);
    await page.getByText('1 to 20 of 21').waitFor();
    await button(page, 'Older').click();
    await page.getByText('21 to 21 of 21').waitFor();
    assert.ok(await button(page, 'Older').isDisabled());
    await button(page, 'Newer').click();
    await page.getByText('1 to 20 of 21').waitFor();
    assert.ok(await button(page, 'Compare two').isDisabled());
    await rows.nth(2).getByRole('checkbox').check();
    await rows.nth(1).getByRole('checkbox').check();
    await button(page, 'Compare two').click();
    const figures = page.getByRole('table', { name: 'Figures of both tests' });
    await figures.waitFor();
    assert.match((await figures.getByRole('row', { name: /^Served \d/ }).textContent()) ?? '', /100 %.*0 %.*−100 points worse/);
    await page.getByText('their faults or seeds differ').waitFor();
    await page.getByText('Both tested the same chain.').waitFor();
  });

  test('a result of 1,000 prompts renders only the visible ones, and scrolls to its end', async (t) => {
    const id = await dashboard().chain({ name: 'long' });
    const result = await dashboard().run(id, { prompt_count: 1000, seed: 3 });
    const page = await dashboard().open(t, `/results/${result}`);
    const prompts = page.getByRole('region', { name: '1,000 prompts' });
    await prompts.waitFor();
    assert.ok((await prompts.getByRole('listitem').count()) < 60);
    await page.getByRole('list', { name: 'Latency percentiles' }).waitFor();
    // The duration of a frame depends on the machine and is in docs/benchmarks.md. The number of rendered items does not.
    const { frames, longestMs, mostAdded, mostPresent } = await scrollToEnd(page, '1,000 prompts');
    t.diagnostic(`${frames} frames, the longest took ${longestMs.toFixed(1)} ms`);
    t.diagnostic(`at most ${mostAdded} items were added in a frame, and ${mostPresent} were present at once`);
    assert.ok(frames > 100);
    assert.ok(mostAdded > 0 && mostAdded < 60, `a frame adds at most the visible items: ${mostAdded}`);
    assert.ok(mostPresent < 60, `only the visible items are present: ${mostPresent}`);
    await prompts.locator('[aria-posinset="1000"]').waitFor();
    assert.ok((await prompts.getByRole('listitem').count()) < 60);
  });
}
