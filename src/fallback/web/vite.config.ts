import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The service serves the dashboard below /dashboard; in development Vite serves it and proxies other requests.
// biome-ignore lint/style/noDefaultExport: Vite reads its configuration from the default export.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/dashboard/',
  plugins: [react()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // The content security policy forbids inline scripts and styles and data URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
  },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      ['/access', '/chains', '/test-results', '/import', '/export-template', '/health', '/openapi.json'].map((path) => [
        path,
        'http://127.0.0.1:8000',
      ]),
    ),
  },
});
