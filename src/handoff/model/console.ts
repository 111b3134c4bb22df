import { packetRoutes } from './packet-routes.ts';

/** The route by which the console answers. It is not part of the API and its description. */
export const respondInConsole = {
  ...packetRoutes.respondPacket,
  id: 'respondInConsole',
  tag: 'pages',
  path: '/console/api/v1/packets/{id}/respond',
} as const;
