import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import type { Packet } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { hasPhrases, phrasesOf, searchableText, searchableWords, snippetOf, wordsOf } from '../../../src/handoff/rules/tokenizer.ts';
import { runs } from '../../support/runs.ts';

const agent = { id: 'a', name: 'A', framework: 'f' };

function packetWith(parts: Partial<Pick<Packet, 'decisions' | 'actions'>> & { context?: Partial<Packet['context']> }): Packet {
  const { context, ...rest } = parts;
  const request = { metadata: { source_agent: agent, target_agent: agent }, context: { summary: 'Summary', ...context }, ...rest };
  const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
  return newPacket(request, { id, now: new Date('2026-03-01T09:30:00.000Z'), agentId: undefined }).packet;
}

describe('the words of a text', () => {
  const cases: [text: string, words: string][] = [
    ['', ''],
    ['Refund order 4711', 'refund order 4711'],
    ['a-b_c.d/e@f', 'a b c d e f'],
    ["don't", 'don t'],
    ['Café CAFÉ café cafe\u0301', 'cafe cafe cafe cafe'],
    ['naïve_Ångström', 'naive angstrom'],
    ['Straße STRASSE', 'strasse strasse'],
    ['Œuvre Ærø Smørrebrød', 'oeuvre aero smorrebrod'],
    ['서울 서울에서 서울은 집 집에서', '서울 서울 서울 집 집'.normalize('NFKD')],
    ['제주도 제주 나이 온도', '제주 제주 나이 온도'.normalize('NFKD')],
    ['İstanbul', 'istanbul'],
    ['Łódź lodz ĐAKOVO đakovo Ħamrun', 'lodz lodz dakovo dakovo hamrun'],
    ['Þórður thordur ISPARTA ısparta', 'thordur thordur isparta isparta'],
    ['soft\u00adhyphen zero\u200bwidth \ufeffmark می\u200cخواهم', 'softhyphen zerowidth mark میخواهم'],
    ['مـــرحبا مرحبا ٤٧١١ ۴۷۱۱ ४७११', 'مرحبا مرحبا 4711 4711 4711'],
    ['ПРИВЕТ мир', 'привет мир'],
    ['ΑΘΗΝΑ Αθήνα', 'αθηνα αθηνα'],
    ['ΟΔΟΣ ΑΣ.Β οδός', 'οδοσ ασ β οδοσ'],
    ['ＡＢＣ １２３', 'abc 123'],
    ['ﬁne', 'fine'],
    ['日本語', '日 本 語'],
    ['ひらがな カタカナ', 'ひ ら か\u3099 な カ タ カ ナ'],
    ['データ', 'テ\u3099 ー タ'],
    ['API密钥', 'api 密 钥'],
    ['密钥API', '密 钥 api'],
    ['3月5日', '3 月 5 日'],
    ['第3回JSON形式v2', '第 3 回 json 形 式 v2'],
    ['人々', '人 々'],
    ['ไทย', 'ไ ท ย'],
    ['ที่ดี', 'ท\u0e35\u0e48 ด\u0e35'],
    ['हिन्दी में काल', 'हिन्दी में काल'],
    ['কাজ', 'কাজ'],
    ['مُحَمَّد', 'محمد'],
    ['שָׁלוֹם', 'שלום'],
    ['Acme™ Café®', 'acme cafe'],
    ['№ 5, 20℃, a÷b', '5 20 a b'],
    ['a\u0301\ufe0f☀\ufe0f b', 'a b'],
    ['👍 ok 🎉', 'ok'],
    ['...!?"\'()*:^{}[]\\', ''],
    ['\u0000a\u0000b', 'a b'],
    ['\ud800x', 'x'],
    [`${'a'.repeat(100)} b`, `${'a'.repeat(64)} b`],
  ];
  for (const [text, words] of cases) {
    test(`${JSON.stringify(text.slice(0, 40))} has ${words === '' ? 'none' : words.slice(0, 40)}`, () => {
      assert.deepEqual(wordsOf(text), words === '' ? [] : words.split(' '));
    });
  }

  test('more marks on a letter than any language uses are dropped', () => {
    // Normalisation sorts marks, which would take minutes for a million of them.
    assert.deepEqual(wordsOf(`a${'\u0301'.repeat(500_000)}${'\u0327'.repeat(500_000)}b`), ['ab']);
  });

  test('Korean words match whether composed or decomposed', () => {
    assert.deepEqual(wordsOf('환불'), wordsOf('환불'.normalize('NFD')));
    assert.equal(wordsOf('환불 요청').length, 2);
  });

  test('only lower-case letters, digits and marks that are part of the spelling are left [H84]', () => {
    const everything = Array.from({ length: 0x10000 / 16 }, (_, row) =>
      String.fromCharCode(...Array.from({ length: 16 }, (_, column) => row * 16 + column)),
    );
    for (const word of wordsOf(everything.join(' '))) {
      assert.match(word, /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*$/u, JSON.stringify(word));
      assert.equal(word, word.toLowerCase());
    }
  });
});

describe('a query', () => {
  const cases: [query: string, phrases: string[][]][] = [
    ['', []],
    ['   ', []],
    ['refund', [['refund']]],
    ['Refund  ORDER', [['refund'], ['order']]],
    ['"charged twice"', [['charged', 'twice']]],
    ['refund "charged twice" gold', [['refund'], ['charged', 'twice'], ['gold']]],
    ['"never closed phrase', [['never', 'closed', 'phrase']]],
    ['""', []],
    ['"" a', [['a']]],
    ['"!?"', []],
    ['a"b c"d', [['a'], ['b', 'c'], ['d']]],
    ['e-mail', [['e', 'mail']]],
    ['日本 語', [['日', '本'], ['語']]],
    ['a OR b NOT c', [['a'], ['or'], ['b'], ['not'], ['c']]],
    ['NEAR(a b, 5)', [['near', 'a'], ['b'], ['5']]],
    ['words:a* ^b', [['words', 'a'], ['b']]],
    ['a & b | !c <-> d:*', [['a'], ['b'], ['c'], ['d']]],
    ["'; drop table packets; --", [['drop'], ['table'], ['packets']]],
  ];
  for (const [query, phrases] of cases) {
    test(`${JSON.stringify(query)} asks for ${JSON.stringify(phrases)}`, () => assert.deepEqual(phrasesOf(query), phrases));
  }

  test('counts a repeated word once [H86]', () => {
    assert.deepEqual(phrasesOf('a '.repeat(32)), [['a']]);
    assert.deepEqual(phrasesOf('(a+)+$ .*'.repeat(200)), [['a']]);
    assert.deepEqual(phrasesOf('gold "gold member" GOLD "Gold, member"'), [['gold'], ['gold', 'member']]);
  });

  test('a star directly after a word of two or more characters at the end of a phrase makes it a prefix [H82]', () => {
    assert.deepEqual(phrasesOf('refu* re* r* * ** a*b ab*cd xy** "gold mem*" "go* member" 日* 서울*'), [
      ['refu*'],
      ['re*'],
      ['r'],
      ['a', 'b'],
      ['ab', 'cd'],
      ['xy'],
      ['gold', 'mem*'],
      ['go', 'member'],
      ['日'],
      [`${'서울'.normalize('NFKD')}*`],
    ]);
  });

  test('only the first 16 words count, which bounds the cost of a query [H86]', () => {
    const words = Array.from({ length: 50 }, (_, index) => `w${index}`);
    assert.deepEqual(phrasesOf(words.join(' ')).flat(), words.slice(0, 16));
    assert.deepEqual(phrasesOf(`"${words.join(' ')}"`), [words.slice(0, 16)]);
    assert.deepEqual(phrasesOf('a'.repeat(10_000)), [['a'.repeat(64)]]);
  });
});

test('a phrase matches consecutive whole words of a packet, the last of which may be a prefix [H93]', () => {
  const text = 'charged twice _ please refund it _';
  for (const [phrases, found] of [
    [[['charged', 'twice']], true],
    [[['charged', 'twice'], ['refund']], true],
    [[['charged', 'twice'], ['order']], false],
    [[['twice', 'please']], false],
    [[['harged', 'twice']], false],
    [[['charged', 'twic']], false],
    [[['charged', 'twic*']], true],
    [[['please', 'refund', 'it']], true],
  ] as const)
    assert.equal(hasPhrases(text, phrases), found, JSON.stringify(phrases));
});

describe('the searchable texts of a packet', () => {
  const packet = packetWith({
    context: {
      summary: 'Summary',
      conversation_state: [{ role: 'hiddenrole', content: 'Turn' }],
      artifacts: [
        { key: 'Key', value: 'line one\nline two' },
        { key: 'Nested', value: { Member: ['Deep\nDeeper', 12.5, true, null, { 'Last\tOne': 'x\u0001y' }] }, content_type: 'hidden/type' },
        { key: 'Number', value: 4711 },
        { key: 'Nothing', value: null },
      ],
      custom: { hiddencustom: 'hidden' },
    },
    decisions: [{ id: 'hiddenid', decision: 'Decided', rationale: 'Because', alternatives: ['Plan\nB', { name: 'Plan\tC' }] }],
    actions: {
      pending: [{ id: 'hiddenid', description: 'Pending', assignee: 'hiddenassignee' }],
      completed: [{ id: 'hiddenid', description: 'Completed', result: 'Result' }],
      failed: [{ id: 'hiddenid', description: 'Failed', error: 'Wrong' }],
    },
  });
  const words = searchableWords(packet);

  test('are summary, conversation, artifacts with their nested texts, decisions and actions', () => {
    const expected =
      'summary turn key line one line two nested member deep deeper 12 5 true last one x y number 4711 nothing ' +
      'decided because plan b name plan c pending completed result failed wrong';
    const found = new Set(words);
    for (const word of expected.split(' ')) assert.ok(found.has(word), word);
  });

  test('are not ids, roles, assignees, media types or custom fields', () => {
    assert.deepEqual(
      words.filter((word) => word.startsWith('hidden')),
      [],
    );
  });

  test('a line break or tab inside a nested text separates words', () => {
    for (const wrong of ['ndeeper', 'tone', 'nb', 'tc', 'u0001y']) assert.ok(!words.includes(wrong), wrong);
  });

  test('a phrase never matches across two parts', () => {
    const parts = packetWith({ context: { summary: 'ends here', conversation_state: [{ role: 'user', content: 'begins there' }] } });
    const text = searchableWords(parts).join(' ');
    assert.ok(text.includes('ends here') && text.includes('begins there'));
    assert.ok(!text.includes('here begins'));
  });

  test('are at most 20,000 words, and fit in a full-text index [H86]', () => {
    const many = packetWith({ context: { summary: Array.from({ length: 30_000 }, (_, index) => `w${index}`).join(' ') } });
    assert.equal(searchableWords(many).length, 20_000);
    const long = Array.from({ length: 20_000 }, (_, index) => `${'한'.repeat(28)}${index}`).join(' ');
    const heavy = searchableWords(packetWith({ context: { summary: long } }));
    const bytes = heavy.reduce((sum, one) => sum + Buffer.byteLength(one), 0);
    assert.ok(heavy.length > 1000 && bytes <= 1_000_000, `${heavy.length} words of ${bytes} bytes`);
  });
});

/** Characters that are words, separate words, or need the path for non-ASCII text. */
const characters = fc.oneof(
  { weight: 20, arbitrary: fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 3 }) },
  { weight: 10, arbitrary: fc.constantFrom('a', 'B', '7', '_', ' ', '\n', '\u0000', '7_', '1_a', 'ab12') },
  { weight: 2, arbitrary: fc.constantFrom('—', '“', '’', '…', '\u2010', '\u2027', '\u00a0') },
);
const plainText = fc.array(characters, { maxLength: 60 }).map((some) => some.join(''));
const anyText = fc.oneof(
  { weight: 4, arbitrary: plainText },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.constantFrom('Café', '日本語 API', '\u2028', 'ﬁne', '½', 'a\ufe0fb', '\ud800', 'x'.repeat(200), 'K\u212a') },
);

describe('the words of a packet as one text', () => {
  const expected = (packet: Packet, prefix: string) =>
    searchableWords(packet)
      .map((word) => prefix + word)
      .join(' ');
  const same = (packet: Packet, prefix = '7_') => assert.equal(searchableText(packet, prefix), expected(packet, prefix));
  const withParts = (parts: readonly string[]) =>
    packetWith({
      context: { summary: parts[0] ?? '', conversation_state: parts.slice(1).map((content) => ({ role: 'user', content })) },
    });

  test('are the same words, each after the prefix, for any text', () => {
    fc.assert(
      fc.property(fc.array(anyText, { maxLength: 6 }), fc.constantFrom('1_', '42_', '1234567890_'), (parts, prefix) => {
        same(withParts(parts), prefix);
      }),
      { numRuns: runs(1000) },
    );
  });

  test('are the same tokens for an index that splits them at spaces', () => {
    const database = new DatabaseSync(':memory:');
    database.exec(`create virtual table entries using fts5(words, content = '', tokenize = "ascii tokenchars '_'")`);
    database.exec(`create virtual table tokens using fts5vocab(entries, instance)`);
    const insert = database.prepare('insert into entries (rowid, words) values (?, ?)');
    const tokens = database.prepare('select term from tokens where doc = ? order by offset');
    let last = 0;
    fc.assert(
      fc.property(fc.array(plainText, { maxLength: 6 }), (parts) => {
        const packet = withParts(parts);
        last += 1;
        insert.run(last, searchableText(packet, '7_'));
        assert.deepEqual(
          tokens.all(last).map(({ term }) => term),
          searchableWords(packet).map((word) => `7_${word}`),
        );
      }),
      { numRuns: 300 },
    );
    database.close();
  });

  test('are the same at the limits: long words, many words, many parts, many bytes', () => {
    for (const length of [63, 64, 65, 1000]) same(withParts(['x'.repeat(length), `a ${'y'.repeat(length)} b`]));
    for (const count of [19_990, 19_998, 19_999, 20_000, 20_001, 30_000]) {
      same(withParts([Array.from({ length: count }, () => 'w').join(' '), 'end']));
      same(withParts([Array.from({ length: count }, () => 'w').join(' '), 'é end']));
      same(withParts([`é ${Array.from({ length: count }, () => 'w').join(' ')}`, 'end']));
      same(withParts([Array.from({ length: count / 10 }, () => 'w123456789').join(' '), 'end']), '1234567890_');
    }
    same(withParts(['x'.repeat(900_000)]));
    same(withParts(['ab-'.repeat(13_000), 'é'.repeat(100), 'ab-'.repeat(13_000)]));
    same(withParts([Array.from({ length: 15_000 }, (_, index) => `${'한'.repeat(28)}${index}`).join(' ')]));
    same(withParts(['ﷺ'.repeat(2_000), 'ﷺ'.repeat(2_000)]));
  });
});

describe('a text of more than 16,384 characters', () => {
  const fragments = [
    'word ',
    'é',
    'x\u0301',
    'ß.',
    '漢字',
    'か\u3099',
    'กำ',
    '한국어에서 ',
    '…',
    '\ufb01',
    '™',
    '\n',
    'ΑΣ ',
    '\u{1f44d}',
    "it's ",
  ];

  test('is cut into words in pieces, and has the same words as in one piece', () => {
    const filler = fc.constantFrom('word ', '漢', 'é, ', '—');
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...fragments), { minLength: 20, maxLength: 200 }), filler, (some, fill) => {
        const part = some.join('');
        const summary = part + fill.repeat(Math.ceil((16_384 - 1.5 * part.length) / fill.length)) + part.repeat(4);
        assert.deepEqual(searchableWords(packetWith({ context: { summary } })), [...wordsOf(summary), '_'].slice(0, 20_000));
      }),
      { numRuns: 60 },
    );
  });

  test('is read no further than its first 20,000 words, at most 16,384 characters at once [H86]', (t) => {
    const { mock } = t.mock.method(String.prototype, 'normalize');
    searchableWords(packetWith({ context: { summary: 'é à ç '.repeat(170_000) } }));
    const lengths = mock.calls.map(({ this: text }) => String(text).length);
    assert.ok(Math.max(...lengths) <= 16_384);
    assert.ok(lengths.length <= 4, `${lengths.length} pieces`);
  });

  test('has a word that is longer than a piece cut at the end of each piece', () => {
    const words = searchableWords(packetWith({ context: { summary: 'é'.repeat(40_000) } }));
    assert.deepEqual(words, [...Array(3).fill('e'.repeat(64)), '_']);
  });
});

test('plain text has the same words alone and together with other text', () => {
  // Text that is not plain takes the slow path with full Unicode rules.
  fc.assert(
    fc.property(plainText, (text) => {
      assert.deepEqual(wordsOf(`${text} é`), [...wordsOf(text), 'e']);
    }),
    { numRuns: runs(1000) },
  );
  for (let code = 0; code < 0x10000; code += 1) {
    const character = String.fromCharCode(code);
    assert.deepEqual(wordsOf(`a${character}b é`), [...wordsOf(`a${character}b`), 'e'], code.toString(16));
  }
});

describe('a snippet', () => {
  test('shows the original text around the words', () => {
    const text = `${'before '.repeat(30)}the Café was CHARGED twice ${'after '.repeat(40)}`;
    const snippet = snippetOf(['Summary', text], [['charged']]);
    assert.match(snippet, /^\.\.\..*Café was CHARGED twice.*\.\.\.$/);
    assert.ok(snippet.length <= 170);
  });

  test('shows up to 40 characters before the word, and up to 160 in total', () => {
    const [ahead, behind] = [`${'a'.repeat(99)} `, ` ${'b'.repeat(199)}`];
    const [near, rest] = [`${'a'.repeat(39)} `, ` ${'b'.repeat(113)}`];
    for (const word of ['needle', 'nédlé,']) {
      const phrases = [wordsOf(word)];
      assert.equal(snippetOf([ahead + word + behind], phrases), `...${near}${word}${rest}...`);
      assert.equal(snippetOf([near + word + rest], phrases), near + word + rest);
      assert.equal(snippetOf([`a${near}${word}`], phrases), `...${near}${word}`);
    }
    assert.equal(snippetOf([ahead + behind], [['needle']]), `${ahead}${'b'.repeat(59)}...`);
  });

  test('shows the longest word of the query that occurs', () => {
    for (const end of ['needle', 'nédle']) {
      const text = `a b c ${'x'.repeat(200)} ${end}`;
      assert.match(snippetOf([text], [['a'], wordsOf(end), ['b']]), new RegExp(`${end}$`));
    }
  });

  test('comes from the first part that contains a word', () => {
    assert.equal(snippetOf(['nothing here', 'the word', 'the word again'], [['word']]), 'the word');
  });

  test('is the beginning of the summary if no part contains the word', () => {
    assert.equal(snippetOf(['A summary', 'another'], [['absent']]), 'A summary');
    assert.equal(snippetOf([], [['absent']]), '');
  });

  test('is searched in the first 16,384 characters of a text [H96]', () => {
    for (const accent of ['', ' é ']) {
      const late = (length: number) => `${'x'.repeat(length - accent.length - 5)}${accent} word`;
      assert.match(snippetOf(['Summary', late(16_384)], [['word']]), /word$/);
      assert.equal(snippetOf(['Summary', late(16_385)], [['word']]), 'Summary');
    }
  });

  test('is one line and never splits a character', () => {
    assert.equal(snippetOf(['one\n\n\ttwo'], [['two']]), 'one two');
    for (const shift of [0, 1]) {
      const text = `${'x'.repeat(shift)}${'👍'.repeat(100)} word ${'🎉'.repeat(100)}`;
      assert.ok(snippetOf([text], [['word']]).isWellFormed());
      assert.ok(snippetOf([text], [['absent']]).isWellFormed());
    }
  });

  test('shows the original text, however letters are normalised for the comparison', () => {
    for (const [text, ...phrase] of [
      ['हिन्दी में लिखा हुआ अनुरोध', 'हिन्दी'],
      ['ราคาที่ตกลงกัน ไม่ถูกต้อง', 'ต', 'ก', 'ล', 'ง'],
      ['Check the Offer… for ACME™', 'acme'],
      ['Kaufvertrag № 5 für MÜLLER', 'muller'],
      ['Préparer l’Été 2026 🌞️ À Paris', 'ete', '2026'],
      ['Cafe\u0301 A\u030angstro\u0308m', 'angstrom'],
      ['ｶﾞｽの件', 'カ\u3099', 'ス'],
      ['ΟΔΟΣ 5', 'οδοσ'],
    ]) {
      assert.equal(snippetOf([text!], [phrase]), text);
    }
    const long = `${'Ünterschrift '.repeat(20)}the END`;
    assert.match(snippetOf([long], [['end']]), /^\.\.\..*Ünterschrift the END$/);
  });

  test('shows the whole word or phrase, not an earlier part of it', () => {
    for (const accent of ['', ' é']) {
      assert.equal(snippetOf([`party plan${accent}`, `the ART museum${accent}`], [['art']]), `the ART museum${accent}`);
      assert.equal(
        snippetOf([`charged once, not twice${accent}`, `Charged-twice!${accent}`], [['charged', 'twice']]),
        `Charged-twice!${accent}`,
      );
      const far = `a gold ring ${'and '.repeat(80)}a gold member${accent}`;
      assert.match(snippetOf([far], [['gold', 'member']]), /gold member/);
      assert.equal(snippetOf([`${'x'.repeat(100)} y${accent}`], [['x'.repeat(64), 'y']]), `${'x'.repeat(100)} y${accent}`);
    }
  });

  test('finds words of scripts without spaces, and words with accents', () => {
    assert.match(snippetOf(['我的API密钥'], [['密', '钥']]), /密钥/);
    assert.match(snippetOf(['Über die Brücke'], [['brucke']]), /Brücke/);
  });
});

test('the words of a query are the words of the text it was copied from [H84]', () => {
  for (const text of ['データをAPIで送る', 'Übergrößen-Rückgabe №5', 'ﬁrst½ „quoted“', '환불 요청 2건', 'ไทย mixed ข้อความ']) {
    assert.deepEqual(phrasesOf(text).flat(), wordsOf(text), text);
  }
});
