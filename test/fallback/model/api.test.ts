import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { routes } from '../../../src/fallback/model/api.ts';
import { ChainRequest } from '../../../src/fallback/model/chain.ts';
import { bodyValidator, queryValidator } from '../../../src/kit/http/validate.ts';
import type { Route } from '../../../src/kit/route.ts';

const all: [string, Route][] = Object.entries(routes);

describe('The routes of the fallback service', () => {
  for (const [name, route] of all) {
    test(`${name} has this id, and examples that match the schemas of its body and responses`, () => {
      assert.equal(route.id, name);
      if (route.body !== undefined) bodyValidator(route.body)(structuredClone(route.bodyExample));
      if (route.query !== undefined) queryValidator(route.query)({});
      for (const [status, { schema, example, contentType }] of Object.entries(route.responses)) {
        if (schema === undefined || contentType !== undefined || status >= '300') continue;
        assert.notEqual(example, undefined, `${status} has an example`);
        bodyValidator(schema)(structuredClone(example));
      }
    });
  }

  test('an optional field may be null as well, so that responses can be sent back', () => {
    const provider = { name: 'a', model_id: 'm', timeout_ms: null, api_base: null, metadata: null };
    const rule = { condition: 'any', action: 'retry', max_retries: null, providers: null };
    bodyValidator(ChainRequest)({ name: 'c', providers: [provider], fallback_rules: [rule], description: null });
  });

  test('a misspelt field is refused with its name', () => {
    assert.throws(
      () => bodyValidator(ChainRequest)({ name: 'c', providers: [{ name: 'a', model_id: 'm', timeoutms: 5 }] }),
      /providers\.0\.timeoutms is not a field/,
    );
  });
});
