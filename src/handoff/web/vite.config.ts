import { pagesConfig } from '../../kit/web/pages.config.ts';

// biome-ignore lint/style/noDefaultExport: Vite reads its configuration from the default export.
export default pagesConfig({ file: import.meta.url, base: '/console/', service: 'http://127.0.0.1:8080', port: 5174 });
