import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';

/** A link on the start page. */
interface StartLink {
  readonly href: string;
  readonly text: string;
  readonly about: string;
}

/** The answer of a service at `GET /`. */
interface StartOptions {
  name: string;
  version: string;
  /** What the service is, in a sentence. */
  about: string;
  /** Paths by name, for programs. */
  links: Readonly<Record<string, string>>;
  /** What a person finds here besides the pages that every service has. */
  pages: readonly StartLink[];
}

/** The pages that every service has. */
const commonPages: readonly StartLink[] = [
  { href: '/docs', text: 'API explorer', about: 'Every operation, to read and to try.' },
  { href: '/redoc', text: 'API reference', about: 'The same on one page.' },
  { href: '/openapi.json', text: 'OpenAPI description', about: 'For programs and generators.' },
  {
    href: '/ready',
    text: 'Readiness',
    about: 'Whether the service can reach its database. /health says whether it runs, /metrics what it counts.',
  },
];

/** The look of the pages in `kit/web`, without their files. */
const styles = `
:root{color-scheme:light dark;--canvas:light-dark(#f7f7f8,#0e0f12);--surface:light-dark(#fff,#15171b);--line:light-dark(#e3e4e8,#272a31);--text:light-dark(#17181c,#e9eaee);--muted:light-dark(#5b5f6b,#9ba0ad);--accent:light-dark(#4450c8,#8e9bff)}
*{box-sizing:border-box}
body{margin:0;min-width:320px;background:var(--canvas);color:var(--text);font:1rem/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:46rem;margin:0 auto;padding:2.5rem 1rem}
h1{font-size:1.375rem;line-height:1.3;margin:0 0 .5rem}
p{margin:0 0 1.5rem;color:var(--muted)}
ul{list-style:none;margin:0;padding:0;background:var(--surface);border:1px solid var(--line);border-radius:10px}
li+li{border-top:1px solid var(--line)}
a{display:block;padding:.875rem 1.25rem;color:var(--accent);font-weight:600;text-decoration:none}
a:hover{text-decoration:underline}
a:focus-visible{outline:2px solid var(--accent);outline-offset:-2px;border-radius:10px}
small{display:block;color:var(--muted);font-size:.875rem;font-weight:400}
`;

const headers = {
  'Content-Security-Policy': `default-src 'none'; img-src data:; style-src 'sha256-${hash('sha256', styles, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

const pageOf = ({ name, version, about, pages }: StartOptions): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${name}</title><link rel="icon" href="data:,"><style>${styles}</style></head>
<body><main><h1>${name}</h1><p>${about} Version ${version}.</p><ul>${[...pages, ...commonPages].map(({ href, text, about: says }) => `<li><a href="${href}">${text}<small>${says}</small></a></li>`).join('')}</ul></main></body>
</html>
`;

/** Answers `GET /`, without a key: browsers get a page that names what is there, other clients the name, the version and the links. */
export function mountStart(app: FastifyInstance, parts: StartOptions): void {
  const page = pageOf(parts);
  const text = JSON.stringify({ name: parts.name, version: parts.version, links: parts.links });
  app.get('/', async (request, reply) => {
    reply.header('Vary', 'Accept');
    if (/\btext\/html\b/.test(request.headers.accept ?? '')) return reply.headers(headers).type('text/html; charset=utf-8').send(page);
    return reply.type('application/json; charset=utf-8').send(text);
  });
}
