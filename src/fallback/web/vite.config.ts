import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The service serves the dashboard below /dashboard; with `npm run dev:web` Vite serves it and forwards other requests.
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
    // Everything but the pages comes from a running service.
    // The host stays the page's, without which the service refuses writes of the pages as those of another origin.
    // biome-ignore lint/style/noProcessEnv: the development server has no settings of its own.
    proxy: { '^/(?!dashboard/)': { target: process.env.SERVICE_URL ?? 'http://127.0.0.1:8000', changeOrigin: false } },
  },
});
