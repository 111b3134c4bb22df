import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { MemoryBudget } from '../memory-budget.ts';
import { Sender } from './sender.ts';

/** The files of the two explorers, which scripts/build-web.mjs copies from their packages: nothing is fetched from elsewhere. `blank` is a URL to remove. */
const assets: Record<string, { file: string; type: string; blank?: string }> = {
  'swagger-ui.css': { file: 'swagger-ui-dist/swagger-ui.css', type: 'text/css; charset=utf-8' },
  'swagger-ui-bundle.js': { file: 'swagger-ui-dist/swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  'redoc.standalone.js': {
    file: 'redoc/bundles/redoc.standalone.js',
    type: 'text/javascript; charset=utf-8',
    // The logo in the corner is the only thing that Redoc fetches from elsewhere, and no option prevents it.
    blank: 'https://cdn.redoc.ly/redoc/logo-mini.svg',
  },
};

const scripts: Record<string, string> = {
  'docs.js': `SwaggerUIBundle({ url: document.body.dataset.api, dom_id: '#explorer', deepLinking: true, tryItOutEnabled: true, persistAuthorization: true });`,
  'redoc.js': `Redoc.init(document.body.dataset.api, { hideDownloadButton: false, disableSearch: false }, document.getElementById('explorer'));`,
};

const explorers = [
  {
    name: 'docs',
    title: 'explorer',
    head: (prefix: string) => `<link rel="stylesheet" href="${prefix}/docs/assets/swagger-ui.css">`,
    scripts: ['swagger-ui-bundle.js', 'docs.js'],
  },
  { name: 'redoc', title: 'reference', head: () => '<style>body{margin:0}</style>', scripts: ['redoc.standalone.js', 'redoc.js'] },
];

// The explorers use inline styles, and Redoc searches in a worker created from a blob. Scripts are same-origin only.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function page(title: string, base: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><link rel="icon" href="data:,">${head}</head>
<body data-api="${base}/openapi.json"><main id="explorer"></main>${body}</body>
</html>
`;
}

/** The memory limit for files being sent. Each file counts once, however many clients it is sent to. */
const maxBytes = 64 * 1024 * 1024;

/**
 * Serves `/openapi.json`, `/docs` and `/redoc` under each of the prefixes.
 * @param describe returns the OpenAPI description, the same at every call; called at the first request
 */
export function mountExplorers(app: FastifyInstance, prefixes: readonly string[], title: string, describe: () => object): void {
  // As bytes, which responses to slow clients share.
  let text: Buffer | undefined;
  const description = () => {
    text ??= Buffer.from(JSON.stringify(describe(), null, 2));
    return text;
  };
  for (const prefix of prefixes) mountExplorersAt(app, prefix, title, description);
}

function mountExplorersAt(app: FastifyInstance, prefix: string, title: string, description: () => Buffer): void {
  const sender = new Sender(new MemoryBudget(maxBytes));
  const html = {
    'Content-Security-Policy': contentSecurityPolicy,
    'X-Content-Type-Options': 'nosniff',
    'Content-Type': 'text/html; charset=utf-8',
  };

  app.get(`${prefix}/openapi.json`, async (_request, reply) =>
    sender.sendText(reply.type('application/json; charset=utf-8'), '', description()),
  );
  for (const { name, title: what, head, scripts: names } of explorers) {
    const body = names.map((script) => `<script src="${prefix}/docs/assets/${script}"></script>`).join('');
    app.get(`${prefix}/${name}`, async (_request, reply) =>
      reply.headers(html).send(page(`${title}: ${what}`, prefix, head(prefix), body)),
    );
  }
  for (const [name, { file, type, blank }] of Object.entries(assets)) {
    let bytes: Buffer | undefined;
    app.get(`${prefix}/docs/assets/${name}`, async (_request, reply) => {
      bytes ??= readAsset(file, blank);
      return sender.sendText(reply.type(type).header('Cache-Control', 'public, max-age=86400'), '', bytes);
    });
  }
  for (const [name, source] of Object.entries(scripts)) {
    app.get(`${prefix}/docs/assets/${name}`, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(source));
  }
}

function readAsset(file: string, blank: string | undefined): Buffer {
  const bytes = readFileSync(new URL(`dist/${file}`, import.meta.url));
  return blank === undefined ? bytes : Buffer.from(bytes.toString().replaceAll(blank, 'data:,'));
}
