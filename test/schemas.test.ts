import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { routes as fallbackRoutes } from '../src/fallback/model/api.ts';
import { routes as handoffRoutes } from '../src/handoff/model/api.ts';
import { ServiceError } from '../src/kit/errors.ts';
import { bodyValidator, queryValidator } from '../src/kit/http/validate.ts';
import type { Route } from '../src/kit/route.ts';

/** Checks a value. A validator compiles its schema at the first value, so a schema that can't be compiled throws here. */
function checkOnce(validate: () => unknown): void {
  try {
    validate();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

describe('The request schemas of every route', () => {
  for (const [service, routes] of Object.entries({ handoff: handoffRoutes, fallback: fallbackRoutes })) {
    test(`compile in the ${service} service`, () => {
      let compiled = 0;
      for (const { id, body, query, nullIsAbsent = false } of Object.values<Route>(routes)) {
        assert.doesNotThrow(() => {
          if (body !== undefined) checkOnce(() => bodyValidator(body, { nullIsAbsent })({ unknown: null }, 0));
          if (query !== undefined) checkOnce(() => queryValidator(query)({ unknown: '' }));
        }, id);
        compiled += Number(body !== undefined) + Number(query !== undefined);
      }
      assert.ok(compiled > 5);
    });
  }
});

describe('The named schemas of an API description', () => {
  for (const service of ['handoff', 'fallback']) {
    test(`are each referred to in the ${service} service's`, () => {
      const text = readFileSync(new URL(`../openapi/${service}.json`, import.meta.url), 'utf8');
      const names = Object.keys((JSON.parse(text) as { components: { schemas: object } }).components.schemas);
      assert.deepEqual(
        names.filter((name) => !text.includes(`"#/components/schemas/${name}"`)),
        [],
      );
    });
  }
});
