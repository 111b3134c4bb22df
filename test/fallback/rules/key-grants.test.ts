import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { mayLeave, parseGrant } from '../../../src/fallback/rules/key-grants.ts';

describe('A key', () => {
  test("is sent only to hosts it is granted for, and the service's own variables to none [F34]", () => {
    const grants = ['MY_KEY@llm.example.com', 'TEAM_*@example.org', '*@any.example.com'].map(parseGrant);
    const cases: [string, string, boolean][] = [
      ['MY_KEY', 'https://llm.example.com/v1', true],
      ['MY_KEY', 'https://LLM.Example.com/v1', true],
      ['MY_KEY', 'https://example.com/v1', false],
      ['MY_KEY', 'https://llm.example.com.evil.net/v1', false],
      ['MY_KEY', 'https://llm.example.com@evil.net/v1', false],
      ['MY_KEY_2', 'https://llm.example.com/v1', false],
      ['TEAM_A', 'https://example.org', true],
      ['MY_TEAM_A', 'https://example.org', false],
      ['SERVICE_API_KEYS', 'https://any.example.com', false],
      ['service_api_keys', 'https://any.example.com', false],
      ['OTHER', 'https://any.example.com', true],
    ];
    for (const [variable, address, may] of cases) assert.equal(mayLeave(variable, address, grants), may, `${variable} to ${address}`);
  });
});

describe('A grant', () => {
  test('without a port allows any port by https, and by http only on loopback [F34]', () => {
    const grants = ['K@llm.example.com', 'K@127.0.0.1', 'K@localhost', 'K@[::1]', 'K@10.0.0.7'].map(parseGrant);
    const cases: [string, boolean][] = [
      ['https://llm.example.com/v1', true],
      ['https://llm.example.com:8443/v1', true],
      ['http://llm.example.com/v1', false],
      ['http://llm.example.com:443/v1', false],
      ['http://10.0.0.7:8080/v1', false],
      ['http://127.0.0.1:4000/v1', true],
      ['http://localhost:4000/v1', true],
      ['http://[::1]:4000/v1', true],
    ];
    for (const [address, may] of cases) assert.equal(mayLeave('K', address, grants), may, address);
  });

  test('with a port allows that port, also by http [F34]', () => {
    const grants = ['K@10.0.0.7:8080', 'K@llm.example.com:443'].map(parseGrant);
    const cases: [string, boolean][] = [
      ['http://10.0.0.7:8080/v1', true],
      ['https://10.0.0.7:8080/v1', true],
      ['https://10.0.0.7/v1', false],
      ['https://llm.example.com/v1', true],
      ['https://llm.example.com:8443/v1', false],
    ];
    for (const [address, may] of cases) assert.equal(mayLeave('K', address, grants), may, address);
  });
});
