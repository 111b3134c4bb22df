// The pages of the site by group, in the order of the sidebar, with their titles there.
export const groups = [
  { text: 'Baton', pages: { 'README.md': 'Overview', 'docs/compatibility.md': 'Compatibility', 'CHANGELOG.md': 'Changelog' } },
  {
    text: 'Handoff service',
    pages: {
      'docs/handoff.md': 'First steps',
      'docs/guide.md': 'Guide',
      'docs/events.md': 'Streams and webhooks',
      'docs/agents.md': 'MCP and A2A',
      'docs/contracts.md': 'Contracts of agents',
      'docs/approvals.md': 'Approvals',
      'docs/time.md': 'Not before, due, and traces',
      'docs/packet-life.md': 'The life of a packet',
      'docs/sign-in.md': 'Sign-in',
      'docs/audit.md': 'The audit log',
    },
  },
  {
    text: 'Fallback service',
    pages: {
      'docs/fallback.md': 'First steps',
      'docs/rehearsal.md': 'Rehearsals',
      'docs/chains.md': 'Guide',
      'docs/exports.md': 'Exports and imports',
    },
  },
  {
    text: 'Running the services',
    pages: {
      'docs/production.md': 'Run it',
      'docs/operations.md': 'Operations',
      'docs/recipes.md': 'Recipes by task',
      'docs/large-deployments.md': 'Large deployments',
      'docs/growth.md': 'Disk space',
      'docs/settings.md': 'Settings',
      'docs/benchmarks.md': 'Benchmarks',
    },
  },
  { text: 'Reference', pages: { 'docs/cli.md': 'Command line', 'docs/errors.md': 'Errors' } },
];

/** Documents for those who change the code. They are not on the site. */
export const forDevelopers = ['docs/silences-handoff.md', 'docs/silences-fallback.md'];

/** The services whose API descriptions become references. */
export const services = [
  { name: 'handoff', text: 'API of the handoff service' },
  { name: 'fallback', text: 'API of the fallback service' },
];

/** The path of a page on the site, without a leading slash and an ending. */
export const sitePathOf = (page) =>
  page === 'README.md'
    ? 'index'
    : page
        .replace(/^docs\//, '')
        .replace(/\.md$/, '')
        .toLowerCase();
