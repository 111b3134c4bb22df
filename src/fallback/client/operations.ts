// Written by `node scripts/docs.ts` from the routes; change them, not this file.

/** The operations of the fallback service, by name. */
export const operations = {
  createChain: { method: 'POST', path: '/chains', body: true },
  checkChain: { method: 'POST', path: '/chains/check', body: true },
  listChains: { method: 'GET', path: '/chains' },
  getChain: { method: 'GET', path: '/chains/{id}' },
  patchChain: { method: 'PATCH', path: '/chains/{id}', body: true },
  deleteChain: { method: 'DELETE', path: '/chains/{id}' },
  getRouting: { method: 'GET', path: '/chains/{id}/routing' },
  getFindings: { method: 'GET', path: '/chains/{id}/findings' },
  getSummary: { method: 'GET', path: '/chains/{id}/summary' },
  runTest: { method: 'POST', path: '/chains/{id}/test', body: true },
  getTestResult: { method: 'GET', path: '/test-results/{id}' },
  cancelTest: { method: 'DELETE', path: '/test-results/{id}' },
  testEvents: { method: 'GET', path: '/test-results/{id}/events', text: true },
  getRehearsalToken: { method: 'GET', path: '/chains/{id}/rehearsal-token' },
  renewRehearsalToken: { method: 'POST', path: '/chains/{id}/rehearsal-token' },
  exportChain: { method: 'POST', path: '/chains/{id}/export' },
  exportTemplate: { method: 'POST', path: '/export-template', body: true },
  importChain: { method: 'POST', path: '/import', body: true },
  getAccess: { method: 'GET', path: '/access' },
  health: { method: 'GET', path: '/health' },
  ready: { method: 'GET', path: '/ready' },
  metrics: { method: 'GET', path: '/metrics', text: true },
} as const;
