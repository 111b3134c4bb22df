import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { described, orNull } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

export const AccessInfo = described("The caller's label and rights.", {
  label: orNull(Type.String(), 'The label of the API key; null for a key without one, and if no keys are configured.'),
  may_write: Type.Boolean({ description: 'Whether the caller may change things; otherwise it may only read and export.' }),
  live_allowed: Type.Boolean({
    description: 'Whether tests may send requests: to the real providers (`drill`, `live`), or to a gateway (`rehearsal`).',
  }),
  version: Type.String({ description: 'The version of the service.' }),
});
export type AccessInfo = Static<typeof AccessInfo>;

/** The routes of what a key may do. */
const accessRoutes = routeTable('system', {
  getAccess: defineRoute({
    method: 'GET',
    path: '/access',
    access: 'read',
    summary: 'What this key may do',
    description: "The caller's label and rights, and whether tests may send requests.",
    responses: {
      200: {
        schema: AccessInfo,
        description: "The caller's label and rights.",
        example: { label: 'ci', may_write: true, live_allowed: false, version: '1.0.0' },
      },
      ...failing(401, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const accessApi = { routes: accessRoutes, schemas: { AccessInfo } };
