import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { walk } from '../../support/pages.ts';
import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** A create request with no searchable text except what is given. */
function request(
  summary: string,
  { priority = 'normal', ...more }: { priority?: string } & Record<string, unknown> = {},
): Record<string, unknown> {
  const agent = { id: 'agent', name: 'Agent', framework: 'langgraph' };
  return { metadata: { source_agent: agent, target_agent: agent, priority }, context: { summary }, ...more };
}

async function create(service: TestService, body: Record<string, unknown>, key?: string): Promise<string> {
  const answer = await service.call('POST', '/packets', { body, ...(key === undefined ? {} : { key }) });
  assert.equal(answer.status, 201, answer.text);
  service.clock.turn(1);
  return answer.body.id;
}

const ask = (service: TestService, q: string, more = '', key?: string): Promise<TestAnswer> =>
  service.call('GET', `/packets/search?q=${encodeURIComponent(q)}${more}`, key === undefined ? {} : { key });

async function search(service: TestService, q: string, more = '', key?: string) {
  const answer = await ask(service, q, more, key);
  assert.equal(answer.status, 200, `${q.slice(0, 80)}: ${answer.text.slice(0, 200)}`);
  return answer.body;
}

/** The summaries found, in alphabetical order, separated by vertical bars. */
async function found(service: TestService, q: string, more = ''): Promise<string> {
  const body = await search(service, q, more);
  assert.equal(body.total, body.packets.length, `total of ${q.slice(0, 80)}`);
  const summaries = body.packets.map(({ context }: { context: { summary: string } }) => context.summary);
  return summaries.sort().join(' | ');
}

const searchTotal = async (service: TestService, q: string): Promise<number> => (await search(service, q)).total;

/** A text of numbered words. */
const words = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `w${from + index}`).join(' ');

const idsOf = (packets: readonly { id: string }[]) => packets.map(({ id }) => id);

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Texts with a special meaning to a search engine, a database or a parser, but not to a person who searches. */
const hostile = [
  '"',
  '""',
  '"""',
  '"unclosed',
  "'",
  "''",
  "' OR 1=1 --",
  "'; drop table packets; --",
  '\\',
  "\\'",
  '(',
  ')',
  '((((',
  '()',
  'a AND',
  'AND',
  'OR',
  'NOT',
  'NOT a',
  'a NOT b',
  'a OR b',
  'NEAR(a b)',
  'NEAR/2',
  'a NEAR b',
  'words:a',
  'words : a',
  '{words}:a',
  '-words:a',
  '^a',
  'a*',
  '*',
  'a + b',
  '+',
  '-a',
  'a & b',
  'a | b',
  '!a',
  '!!',
  '&',
  '|',
  'a <-> b',
  'a <2> b',
  'a:*',
  "a:A'",
  ':',
  'a:',
  '1_a',
  '_',
  '%',
  '%%%',
  '$1',
  '?',
  '?1',
  ':name',
  '@name',
  '\ufffd',
  '\ufeff',
  '\u202e\u2066',
  '\u0301\u0301\u0301',
  '\r\n\t',
  '. , ; - / #',
  '...',
  '—',
  '👍',
  '👍🏽 🎉 👨‍👩‍👧‍👦',
  'a 👍',
  '<script>alert(1)</script>',
  '{"a": [1]}',
  '../../etc/passwd',
  'x'.repeat(10_000),
  'x '.repeat(5_000),
  '"'.repeat(10_000),
  '('.repeat(10_000),
  `"${'a b '.repeat(2_500)}"`,
  '日'.repeat(10_000),
  'é'.repeat(10_000),
  Array.from({ length: 2_000 }, (_, index) => `w${index}`).join(' '),
];

for (const store of stores) {
  describe(`GET /packets/search on ${store.name}`, () => {
    test('the answer has the shape of a list; each item is a summary with a snippet [H80]', async () => {
      const service = await shareService(store);
      const packet = await createPacket(service);
      const answer = await ask(service, 'charged');
      assert.equal(answer.status, 200);
      const { packets, ...rest } = answer.body;
      assert.deepEqual(rest, { order: 'rank', total: 1, total_is: 'exact', limit: 50, offset: 0, next_cursor: null });
      const [summary] = (await service.call('GET', '/packets')).body.packets;
      const { snippet, ...shown } = packets[0];
      assert.deepEqual(shown, summary);
      assert.equal(shown.id, packet.id);
      assert.equal(snippet, packet.context.summary);
    });

    test('letters with strokes or without dots, signs that are not seen, and digits of other scripts do not matter [H84]', async () => {
      const service = await shareService(store);
      const pairs = [
        ['Łódź', 'lodz'],
        ['đakovo', 'Dakovo'],
        ['ISPARTA', 'ısparta'],
        ['İzmir', 'izmir'],
        ['Ħamrun', 'hamrun'],
        ['Þórður', 'thordur'],
        ['soft\u00adware', 'software'],
        ['zero\u200bwidth\u2060sign', 'zerowidthsign'],
        ['مرحـــبا', 'مرحبا'],
        ['٤٧١١', '4711'],
        ['۸۲۹', '829'],
      ] as const;
      const texts = pairs.map(([text]) => text).join(' ');
      const others = pairs.map(([, other]) => other).join(' ');
      const made = [await create(service, request(texts)), await create(service, request(others))];
      for (const query of [texts, others]) {
        const { body } = await ask(service, query);
        assert.deepEqual(body.packets.map((found: { id: string }) => found.id).toSorted(), made.toSorted(), query);
      }
      const { body } = await ask(service, 'software');
      assert.ok(body.packets.every(({ snippet }: { snippet: string }) => /soft\u00ad?ware/.test(snippet)));
    });

    test('words match as whole words, in any case and with or without accents [H84]', async () => {
      const service = await shareService(store);
      for (const summary of ['Refund for the Café', 'refunded CAFE', 'Über Ångström', 'ΑΘΗΝΑ', 'Привет Мир', 'Straße 12b']) {
        await create(service, request(summary));
      }
      assert.equal(await found(service, 'refund'), 'Refund for the Café');
      assert.equal(await found(service, 'REFUND'), 'Refund for the Café');
      assert.equal(await found(service, 'refunded'), 'refunded CAFE');
      assert.equal(await found(service, 'fund'), '');
      for (const cafe of ['cafe', 'café', 'CAFÉ', 'cafe\u0301', 'Café!']) {
        assert.equal(await found(service, cafe), 'Refund for the Café | refunded CAFE', cafe);
      }
      assert.equal(await found(service, 'uber angstrom'), 'Über Ångström');
      assert.equal(await found(service, 'ÜBER ÅNGSTRÖM'), 'Über Ångström');
      assert.equal(await found(service, 'Αθήνα'), 'ΑΘΗΝΑ');
      assert.equal(await found(service, 'привет'), 'Привет Мир');
      assert.equal(await found(service, 'straße 12B'), 'Straße 12b');
    });

    test('the answer says that matches are ranked, and that the total is exact [H80]', async () => {
      const service = await shareService(store);
      await create(service, request('charged twice'));
      for (const q of ['charged', 'nothing', '...']) {
        const { order, total_is } = await search(service, q);
        assert.deepEqual([order, total_is], ['rank', 'exact']);
      }
    });

    test('a star after a word finds all words with that prefix, alone, at the end of a phrase and in the snippet [H82]', async () => {
      const service = await shareService(store);
      for (const summary of ['refund paid', 'refunds due', 'Refundación', 'prefund', 'gold member', 'gold membership', 'r'])
        await create(service, request(summary));
      assert.equal(await found(service, 'refund*'), 'Refundación | refund paid | refunds due');
      assert.equal(await found(service, 'refund* d*'), '');
      assert.equal(await found(service, 'refund* du*'), 'refunds due');
      assert.equal(await found(service, '"gold mem*"'), 'gold member | gold membership');
      assert.equal(await found(service, 'nothing*'), '');
      assert.equal(await found(service, 'r*'), 'r');
      assert.equal(await found(service, 'refund'), 'refund paid');
      const { packets } = await search(service, 'membersh*');
      assert.deepEqual(
        packets.map(({ snippet }: { snippet: string }) => snippet),
        ['gold membership'],
      );
    });

    test('questions and reasons of checkpoints are searched, also after they change [H80]', async () => {
      const service = await shareService(store);
      const id = await create(
        service,
        request('order', { hitl: { required: true, reason: 'above the limit', question: 'Refund in full?' } }),
      );
      assert.equal(await found(service, 'full limit'), 'order');
      const patched = await service.call('PATCH', `/packets/${id}`, { body: { hitl: { question: 'Or in part?' } } });
      assert.equal(patched.status, 200, patched.text);
      assert.equal(await found(service, 'part'), 'order');
      assert.equal(await found(service, 'full'), '');
    });

    test('every list filter that a search supports narrows it [H80]', async () => {
      const service = await shareService(store);
      const agent = (id: string) => ({ id, name: 'Agent', framework: 'langgraph' });
      const made = (target: string, tags: string[], summary: string) =>
        create(service, { metadata: { source_agent: agent('a'), target_agent: agent(target), tags }, context: { summary } });
      await made('one', ['x', 'y'], 'word first');
      const between = service.clock.read().toISOString();
      await made('two', ['x'], 'word second');
      assert.equal(await found(service, 'word', '&target_agent=one'), 'word first');
      assert.equal(await found(service, 'word', '&tags=x'), 'word first | word second');
      assert.equal(await found(service, 'word', '&tags=x,y'), 'word first');
      assert.equal(await found(service, 'word', `&created_after=${between}`), 'word second');
      assert.equal(await found(service, 'word', `&created_before=${new Date(Date.parse(between) - 1).toISOString()}`), 'word first');
      assert.equal((await ask(service, 'word', '&created_after=yesterday')).status, 400);
    });

    test('a page of more than 16 MiB ends early, and nothing is skipped; at an offset it gets 413 with the limit that fits [H78]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_PACKET_BYTES_BUSINESS: '16777216' } });
      for (let index = 0; index < 4; index += 1) await create(service, request(`word ${'x'.repeat(5_600_000)}`));
      const refused = await ask(service, 'word', '&limit=5&offset=1');
      assert.equal(refused.status, 413, refused.text.slice(0, 200));
      assert.deepEqual([refused.body.code, refused.body.field], ['PAYLOAD_TOO_LARGE', 'limit']);
      assert.match(refused.body.detail, /limit=2, .*next_cursor/);
      const first = await search(service, 'word', '&limit=5');
      const second = await search(service, 'word', `&limit=5&cursor=${first.next_cursor}`);
      assert.deepEqual(
        [first, second].map(({ packets }) => packets.length),
        [2, 2],
      );
      assert.equal(second.next_cursor, null);
      assert.equal(new Set([first, second].flatMap(({ packets }) => idsOf(packets))).size, 4);
    });

    test('all words must occur, in any order and any part', async () => {
      const service = await shareService(store);
      await create(service, request('alpha beta'));
      await create(service, request('beta gamma'));
      await create(service, request('gamma', { decisions: [{ id: 'd', decision: 'alpha', rationale: 'later beta' }] }));
      assert.equal(await found(service, 'alpha'), 'alpha beta | gamma');
      assert.equal(await found(service, 'beta alpha'), 'alpha beta | gamma');
      assert.equal(await found(service, 'alpha gamma'), 'gamma');
      assert.equal(await found(service, 'alpha beta gamma'), 'gamma');
      assert.equal(await found(service, 'alpha delta'), '');
      assert.equal(await found(service, 'alpha  ,;  BETA'), 'alpha beta | gamma');
    });

    test('words in quotes must follow one another, within one part [H82]', async () => {
      const service = await shareService(store);
      await create(service, request('charged twice for one order'));
      await create(service, request('twice charged, one more order'));
      await create(service, request('charged', { actions: { pending: [{ id: 'a', description: 'twice', assignee: '' }] } }));
      assert.equal(await found(service, 'charged twice'), 'charged | charged twice for one order | twice charged, one more order');
      assert.equal(await found(service, '"charged twice"'), 'charged twice for one order');
      assert.equal(await found(service, '"twice charged"'), 'twice charged, one more order');
      assert.equal(await found(service, '"charged TWICE for" order'), 'charged twice for one order');
      assert.equal(await found(service, '"one order" charged'), 'charged twice for one order');
      assert.equal(await found(service, '"charged twice" "one more"'), '');
      assert.equal(await found(service, '"charged, twice!"'), 'charged twice for one order');
      assert.equal(await found(service, '"charged twice'), 'charged twice for one order');
      assert.equal(await found(service, '"charged"'), 'charged | charged twice for one order | twice charged, one more order');
    });

    test('status and priority filter the matches and their total', async () => {
      const service = await shareService(store);
      const low = await create(service, request('word low', { priority: 'low' }));
      await create(service, request('word high', { priority: 'high' }));
      const claimed = await create(service, request('word claimed', { priority: 'high' }));
      await service.call('POST', `/packets/${claimed}/claim`, { body: { agent_id: 'worker' } });
      await service.call('DELETE', `/packets/${low}`);
      assert.equal(await found(service, 'word'), 'word claimed | word high | word low');
      assert.equal(await found(service, 'word', '&status=created'), 'word high');
      assert.equal(await found(service, 'word', '&status=created,claimed'), 'word claimed | word high');
      assert.equal(await found(service, 'word', '&status=expired'), 'word low');
      assert.equal(await found(service, 'word', '&priority=high'), 'word claimed | word high');
      assert.equal(await found(service, 'word', '&priority=high&status=claimed'), 'word claimed');
      assert.equal(await found(service, 'word', '&priority=critical'), '');
      assert.equal(await found(service, 'low', '&priority=high'), '');
    });

    test('new packets, created singly, in a chain or in a batch, are found at once, before and after they are indexed [H80]', async () => {
      const service = await shareService(store);
      const id = await create(service, request('first needle'));
      assert.equal(await found(service, 'needle'), 'first needle');
      assert.equal((await service.call('POST', `/packets/${id}/chain`, { body: request('second needle') })).status, 201);
      assert.equal(await found(service, 'needle'), 'first needle | second needle');
      const batch = await service.call('POST', '/packets/batch', { body: { packets: [request('third needle'), request('hay')] } });
      assert.equal(batch.status, 201);
      assert.equal(await found(service, 'needle'), 'first needle | second needle | third needle');
      await service.handoff.runOnce.index();
      await service.handoff.runOnce.index();
      assert.equal(await found(service, 'needle'), 'first needle | second needle | third needle');
    });

    test('300 packets created at once are all found by the next search', async () => {
      const service = await shareService(store);
      await Promise.all(Array.from({ length: 300 }, (_, index) => createPacket(service, { context: { summary: `needle n${index}` } })));
      const all = await search(service, 'needle', '&limit=200');
      assert.equal(all.total, 300);
      assert.equal(all.packets.length, 200);
      assert.equal((await search(service, 'n299')).total, 1);
    });

    test('an updated packet is found at once by its new words and not by the old, indexed before or not [H80]', async () => {
      const service = await shareService(store);
      for (const indexed of [false, true]) {
        const id = await create(service, request(`old${indexed}`));
        if (indexed) await service.handoff.runOnce.index();
        const patched = await service.call('PATCH', `/packets/${id}`, {
          body: { context: { summary: `new${indexed}` }, decisions: [{ id: 'd', decision: `decided${indexed}`, rationale: '' }] },
        });
        assert.equal(patched.status, 200);
        assert.equal(await found(service, `old${indexed}`), '');
        assert.equal(await found(service, `new${indexed}`), `new${indexed}`);
        assert.equal(await found(service, `new${indexed} decided${indexed}`), `new${indexed}`);
        const moved = await service.call('PATCH', `/packets/${id}`, { body: { status: 'failed', context: { summary: `last${indexed}` } } });
        assert.equal(moved.status, 200);
        assert.equal(await found(service, `new${indexed}`), '');
        assert.equal(await found(service, `last${indexed}`, '&status=failed'), `last${indexed}`);
      }
    });

    test('permanently deleted packets are not found, indexed before or not; expired ones are [H79]', async () => {
      const service = await shareService(store);
      for (const indexed of [false, true]) {
        const removed = await create(service, request('needle removed'));
        const expired = await create(service, request('needle expired'));
        if (indexed) await service.handoff.runOnce.index();
        assert.equal((await service.call('DELETE', `/packets/${removed}?hard=true`)).status, 204);
        assert.equal((await service.call('DELETE', `/packets/${expired}`)).status, 204);
        assert.equal(await found(service, 'needle'), 'needle expired');
        await service.call('DELETE', `/packets/${expired}?hard=true`);
        assert.equal(await found(service, 'needle'), '');
      }
    });

    test('packets that are deleted while the index is being written leave nothing in it', async () => {
      const service = await shareService(store);
      const batch = await service.call('POST', '/packets/batch', {
        body: { packets: Array.from({ length: 100 }, () => request('needle')) },
      });
      assert.equal(batch.status, 201);
      const ids: string[] = batch.body.created.map(({ id }: { id: string }) => id);
      const [, , ...removed] = await Promise.all([
        service.handoff.runOnce.index(),
        ask(service, 'needle'),
        ...ids.slice(1).map((id) => service.call('DELETE', `/packets/${id}?hard=true`)),
      ]);
      assert.ok(removed.every(({ status }) => status === 204));
      const { total, packets } = await search(service, 'needle');
      assert.equal(packets.length, 1);
      assert.equal(total, 1);
    });

    test('the best match comes first [H80]', async () => {
      const service = await shareService(store);
      const padding = 'one two three four five six seven eight';
      const once = await create(service, request(`needle ${padding} nine ten eleven`));
      const often = await create(service, request(`needle needle needle needle ${padding}`));
      const twice = await create(service, request(`needle needle ${padding} nine ten`));
      const { packets } = await search(service, 'needle');
      assert.deepEqual(
        packets.map(({ id }: { id: string }) => id),
        [often, twice, once],
      );
    });

    test('limit and offset page through every match once, ties oldest first, with the exact total, with and without a filter [H80, H90]', async () => {
      const service = await shareService(store);
      const packets = Array.from({ length: 45 }, (_, index) => request('needle', { priority: index % 3 === 0 ? 'high' : 'low' }));
      const made = await service.call('POST', '/packets/batch', { body: { packets } });
      assert.equal(made.status, 201);
      for (const [filter, total] of [
        ['', 45],
        ['&priority=high', 15],
        ['&status=created', 45],
        ['&priority=low&status=created,claimed', 30],
      ] as const) {
        const seen: string[] = [];
        for (let offset = 0; offset < total + 7; offset += 7) {
          const page = await search(service, 'needle', `${filter}&limit=7&offset=${offset}`);
          assert.deepEqual(
            [page.total, page.limit, page.offset, page.next_cursor === null],
            [total, 7, offset, offset + 7 >= total],
            filter,
          );
          seen.push(...idsOf(page.packets));
        }
        assert.equal(seen.length, total, filter);
        assert.equal(new Set(seen).size, total, filter);
        // Ties come oldest first, with any limit.
        const whole = await search(service, 'needle', `${filter}&limit=200`);
        assert.deepEqual(seen, idsOf(whole.packets), filter);
        assert.deepEqual(
          seen,
          idsOf(made.body.created).filter((id) => seen.includes(id)),
          filter,
        );
      }
    });

    test('next_cursor pages through every match once and is null on the last page [H90]', async () => {
      const service = await shareService(store);
      const packets = Array.from({ length: 21 }, (_, index) => request('needle', { priority: index % 3 === 0 ? 'high' : 'low' }));
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      for (const [filter, total] of [
        ['', 21],
        ['&priority=low', 14],
      ] as const) {
        const pages = await walk((query) => search(service, 'needle', query), `${filter}&limit=7`);
        for (const [index, page] of pages.entries())
          assert.deepEqual([page.total, page.packets.length, page.offset], [total, 7, 7 * index]);
        const seen = pages.flatMap(({ packets }) => packets.map(({ id }: { id: string }) => id));
        assert.deepEqual([seen.length, new Set(seen).size], [total, total], filter);
      }
      const { next_cursor } = await search(service, 'needle', '&limit=7');
      const mark = Buffer.from(next_cursor, 'base64url').toString().slice(0, 12);
      for (const position of ['1000000001', '9999999999', '99999999999', '-1', '1e3', ' 7', '7.5'])
        assert.equal((await ask(service, 'needle', `&cursor=${Buffer.from(mark + position).toString('base64url')}`)).status, 400, position);
      const other = await newTenant(service);
      for (const answer of [
        await ask(service, 'needle', '&limit=7&cursor=x'),
        await ask(service, 'needle', `&limit=7&offset=7&cursor=${next_cursor}`),
        await ask(service, 'needle', `&priority=low&cursor=${next_cursor}`),
        await ask(service, 'other', `&cursor=${next_cursor}`),
        await service.call('GET', `/packets/search?q=needle&cursor=${next_cursor}`, { key: other.key }),
        await service.call('GET', `/packets?cursor=${next_cursor}`),
        await ask(service, 'needle', `&cursor=${(await service.call('GET', '/packets?limit=1')).body.next_cursor}`),
      ]) {
        assert.deepEqual([answer.status, answer.body.field], [400, 'cursor']);
      }
    });

    test('any text is safe to search for: only its words count [H82]', async () => {
      const service = await shareService(store);
      await create(service, request('haystack'));
      for (const q of hostile) {
        if (q.trim() === '') continue;
        const body = await search(service, q);
        assert.equal(body.total, 0, q.slice(0, 80));
        assert.deepEqual(body.packets, [], q.slice(0, 80));
      }
      // The same texts in a packet are stored, found by their words, and shown.
      for (const text of hostile) {
        const id = await create(service, request(`${text} marker`));
        const { packets, total } = await search(service, 'marker', '&limit=1');
        assert.equal(total, 1, text.slice(0, 80));
        assert.equal(packets[0].id, id);
        assert.equal(packets[0].context.summary, `${text} marker`.toWellFormed());
        assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      }
    });

    test('search engine operators are plain words: a OR b means three words', async () => {
      const service = await shareService(store);
      for (const summary of ['a b', 'a or b', 'b', 'a near b not c']) await create(service, request(summary));
      assert.equal(await found(service, 'a OR b'), 'a or b');
      assert.equal(await found(service, 'a NOT b'), 'a near b not c');
      assert.equal(await found(service, 'a | b'), 'a b | a near b not c | a or b');
      assert.equal(await found(service, 'a*'), 'a b | a near b not c | a or b');
      assert.equal(await found(service, '-a b'), 'a b | a near b not c | a or b');
      assert.equal(await found(service, '!a & b'), 'a b | a near b not c | a or b');
    });

    test('a search for only punctuation or emoji gets 200 with no results [H82]', async () => {
      const service = await shareService(store);
      await create(service, request('... 👍 !!!'));
      for (const q of ['...', '!', '👍', '""']) assert.equal((await search(service, q)).total, 0, q);
    });

    test('a packet of the largest allowed size with only distinct words is stored and found', async () => {
      const service = await shareService(store);
      const words = Array.from({ length: 30_000 }, (_, index) => `한국어단어${index}`);
      const huge = words.join(' ').slice(0, 340_000);
      const id = await create(service, request(`needle ${huge}`));
      const large = await create(service, request(`needle ${'x'.repeat(900_000)}`));
      const spread = Array.from({ length: 20_000 }, (_, index) => `${index}${'y'.repeat(40)}`).join(' ');
      const many = await create(service, request(`needle ${spread}`));
      const { packets, total } = await search(service, 'needle');
      assert.equal(total, 3);
      assert.deepEqual(packets.map((packet: { id: string }) => packet.id).sort(), [id, large, many].sort());
      assert.equal((await search(service, '한국어단어7')).total, 1);
      await service.handoff.runOnce.index();
      await create(service, request('after'));
      assert.equal(await found(service, 'after'), 'after');
    });

    test('during other searches, a search finds every acknowledged packet and no deleted one', async () => {
      const service = await shareService(store);
      const long = Array.from({ length: 200 }, (_, index) => `w${index}`).join(' ');
      const packets = range(100).map((index) => ({
        ...request(`common text ${index}`),
        context: { summary: `common text ${index}`, conversation_state: [{ role: 'user', content: long }] },
      }));
      for (let batch = 0; batch < 2; batch += 1)
        assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      let searching = true;
      const others = range(4).map(async () => {
        while (searching) assert.equal((await search(service, '"common text" w199')).total, 200);
      });
      try {
        for (const number of range(10)) {
          const id = await create(service, request(`special${number}`));
          assert.equal((await search(service, `special${number}`)).total, 1, `created, ${number}`);
          assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
          assert.equal((await search(service, `special${number}`)).total, 0, `removed, ${number}`);
        }
      } finally {
        searching = false;
      }
      await Promise.all(others);
    });

    test("another tenant's packets are neither found nor counted, and do not affect the ranking", async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      for (let index = 0; index < 5; index += 1) await create(service, request(`shared ours${index}`));
      const own = await create(service, request('shared theirs'), key);
      const theirs = await search(service, 'shared', '', key);
      assert.equal(theirs.total, 1);
      assert.equal(theirs.packets[0].id, own);
      assert.equal((await search(service, 'ours1', '', key)).total, 0);
      assert.equal((await search(service, 'shared')).total, 5);
      assert.equal((await search(service, 'theirs')).total, 0);
      // The index prefixes words with their tenant; no query can express another tenant's prefix.
      for (const q of ['1_shared', '2_shared', '"1_shared"', '1 shared']) assert.equal((await search(service, q, '', key)).total, 0, q);
    });

    test('no packet prevents others from being found: words cut in half, 19,000 long words, texts that grow [H86]', async () => {
      const service = await shareService(store);
      const cut = `a${'\u{10428}'.repeat(40)}`;
      const words = Array.from({ length: 19_000 }, (_, index) => String(index).padStart(53, 'abcdefgh'));
      const growing = '\ufdfa '.repeat(60_000);
      for (const summary of [cut, words.join(' '), growing, '\ud800'.repeat(1000), '']) {
        const answer = await service.call('POST', '/packets', {
          body: packetRequest({ context: { summary: summary === '' ? '\u0000' : summary } }),
        });
        assert.equal(answer.status, 201);
      }
      await createPacket(service);
      for (const found of [cut, words[0]!, 'charged']) {
        const answer = await service.call('GET', `/packets/search?q=${encodeURIComponent(found)}`);
        assert.equal(answer.status, 200);
        assert.equal(answer.body.total, 1);
      }
    });

    test('a phrase is found as long as its words are among the first 16,383 of the packet and the first 255 of their kind [H86]', async () => {
      const service = await shareService(store);
      await createPacket(service, { context: { summary: words(0, 20_000) }, decisions: [], actions: {} });
      assert.equal(await searchTotal(service, '"w16381 w16382"'), 1);
      await createPacket(service, { context: { summary: `${'often '.repeat(254)}often seldom` }, decisions: [], actions: {} });
      assert.equal(await searchTotal(service, '"often seldom"'), 1);
      // Later words are still found individually; PostgreSQL only loses their positions.
      assert.equal(await searchTotal(service, 'w16390 w16391'), 1);
    });
  });
}
