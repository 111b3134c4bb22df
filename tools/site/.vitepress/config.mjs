import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { groups, sitePathOf } from '../pages.mjs';
import { slug } from '../reference.mjs';

const staged = fileURLToPath(new URL('../staged', import.meta.url));
const sections = JSON.parse(readFileSync(`${staged}/sections.json`, 'utf8'));

// biome-ignore lint/style/noDefaultExport: VitePress takes the default export.
export default defineConfig({
  title: 'Baton',
  description: 'Handoff packets between software agents, and fallback chains between model providers',
  srcDir: 'staged',
  outDir: 'dist',
  cleanUrls: false,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  ignoreDeadLinks: 'localhostLinks',
  themeConfig: {
    search: { provider: 'local', options: { _render: (src, env, md) => (env.frontmatter?.search === false ? '' : md.render(src, env)) } },
    outline: [2, 3],
    nav: [
      { text: 'Handoff service', link: '/handoff' },
      { text: 'Fallback service', link: '/fallback' },
      { text: 'APIs', items: sections.map(({ name, text }) => ({ text, link: `/api/${name}/` })) },
    ],
    sidebar: [
      ...groups.map(({ text, pages }) => ({
        text,
        items: Object.entries(pages).map(([page, title]) => ({ text: title, link: page === 'README.md' ? '/' : `/${sitePathOf(page)}` })),
      })),
      ...sections.map(({ name, text, tags }) => ({
        text,
        collapsed: true,
        items: [
          { text: 'All operations', link: `/api/${name}/` },
          ...tags.map((tag) => ({ text: tag, link: `/api/${name}/${slug(tag)}` })),
          { text: 'Schemas', link: `/api/${name}/schemas` },
        ],
      })),
    ],
  },
});
