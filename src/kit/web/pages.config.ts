import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type UserConfig } from 'vite';

interface Pages {
  /** The URL of the configuration file in the application's folder. */
  file: string;
  /** Where the service serves the application: `/dashboard/`. */
  base: string;
  /** The address of the service during development, unless `SERVICE_URL` names another one. */
  service: string;
  /** The port of the development server. */
  port: number;
}

/** The configuration of Vite for the pages of a service. With a development server, it forwards all other requests to a service. */
export const pagesConfig = ({ file, base, service, port }: Pages): UserConfig =>
  defineConfig({
    root: fileURLToPath(new URL('.', file)),
    base,
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
      port,
      // The Host header stays that of the page. With another one, the service would refuse the page's writes as requests of another origin.
      // biome-ignore lint/style/noProcessEnv: the development server has no settings of its own.
      proxy: { [`^/(?!${base.slice(1)})`]: { target: process.env.SERVICE_URL ?? service, changeOrigin: false } },
    },
  });
