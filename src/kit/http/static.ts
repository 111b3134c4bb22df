import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import { ServiceError } from '../errors.ts';

/** A built browser application to serve. */
interface StaticOptions {
  /** Its path, for example `/dashboard`; also served with a trailing slash. */
  prefix: string;
  /** The folder of the built files: `index.html`, and `assets/` with content digests in the file names. */
  folder: string;
  /** The message of the error if the folder does not exist. */
  notBuilt: string;
  /** Names and texts for pages, which `index.html` gets as `meta` elements. */
  metadata?: Readonly<Record<string, string>>;
}

// Same-origin scripts, styles and requests only, no framing, and no text that becomes HTML or a script.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};

interface StaticFile {
  readonly bytes: Buffer;
  /** The file compressed with Brotli, if the build created it. */
  readonly compressed: Buffer | undefined;
}

/**
 * Serves a browser application without authentication. A path that does not look like a file is a page of the application
 * and gets `index.html`; a missing file is 404. Files are read once, at the first request, and served from memory, so no
 * file path is ever built from a request.
 */
export function mountStatic(app: FastifyInstance, { prefix, folder, notBuilt, metadata = {} }: StaticOptions): void {
  let files: ReadonlyMap<string, StaticFile> | undefined;

  const serve = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers({
      'Content-Security-Policy': contentSecurityPolicy,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
    });
    files ??= readFiles(folder, metadata);
    if (files === undefined) throw new ServiceError('SERVICE_UNAVAILABLE', notBuilt);
    const asked = (request.params as { '*'?: string })['*'] ?? '';
    const isPage = posix.extname(asked) === '' && !asked.startsWith('assets/');
    const name = isPage ? 'index.html' : asked;
    const file = files.get(name);
    if (file === undefined) throw new ServiceError('NOT_FOUND', 'There is nothing at this path.');
    reply
      .type(types[posix.extname(name)] ?? 'application/octet-stream')
      .header('Cache-Control', name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache');
    if (file.compressed === undefined) return reply.send(file.bytes);
    reply.header('Vary', 'Accept-Encoding');
    if (!/\bbr\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(file.bytes);
    return reply.header('Content-Encoding', 'br').send(file.compressed);
  };
  app.get(prefix, serve);
  app.get(`${prefix}/*`, serve);
}

/** The files of a folder by relative path; undefined if there is no `index.html`. */
function readFiles(folder: string, metadata: Readonly<Record<string, string>>): ReadonlyMap<string, StaticFile> | undefined {
  if (!statSync(join(folder, 'index.html'), { throwIfNoEntry: false })?.isFile()) return undefined;
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length).split(sep).filter(Boolean).join('/'));
  const all = new Set(names);
  const read = (name: string) => readFileSync(join(folder, name));
  const files = new Map<string, StaticFile>(
    names
      .filter((name) => !(name.endsWith('.br') && all.has(name.slice(0, -3))))
      .map((name): [string, StaticFile] => [
        name,
        { bytes: read(name), compressed: all.has(`${name}.br`) ? read(`${name}.br`) : undefined },
      ]),
  );
  const elements = Object.entries(metadata).map(([name, text]) => `<meta name="${escaped(name)}" content="${escaped(text)}">`);
  if (elements.length === 0) return files;
  const page = read('index.html')
    .toString()
    .replace('</head>', () => `${elements.join('')}</head>`);
  return files.set('index.html', { bytes: Buffer.from(page), compressed: undefined });
}

/** A text in an attribute of HTML. */
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
