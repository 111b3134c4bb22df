import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { validate } from 'dockerfile-utils';

// Checks the files in deploy/ by the linters and programs of their formats. A missing program is a failure: CI installs all.
const root = fileURLToPath(new URL('../..', import.meta.url));
const here = fileURLToPath(new URL('.', import.meta.url));
let failed = false;

/** Runs a linter; a failure prints what it said. */
function run(label: string, command: string, args: readonly string[], cwd = root): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) console.log(`${label}: no faults`);
  else {
    failed = true;
    console.error(`${label}:\n${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`);
  }
}

const faults = validate(readFileSync(`${root}Dockerfile`, 'utf8'));
for (const { message, range } of faults) console.error(`Dockerfile:${range.start.line + 1}: ${message}`);
if (faults.length > 0) failed = true;
else console.log('Dockerfile: no faults');

// nginx is meant to be reached from everywhere.
run('compose.yaml', process.execPath, [
  `${here}node_modules/dclint/bin/dclint.cjs`,
  'compose.yaml',
  '--quiet',
  '--disable-rule',
  'no-unbound-port-interfaces',
]);
run('Grafana dashboards (types)', `${root}node_modules/.bin/tsc`, ['-p', here]);
run('Grafana dashboards (files)', process.execPath, [`${here}dashboards.ts`, '--check']);
run('Prometheus settings', 'promtool', ['check', 'config', '--syntax-only', 'deploy/prometheus/prometheus.yml']);
run('Prometheus alerts', 'promtool', ['test', 'rules', 'deploy/prometheus/alerts.test.yml']);
for (const service of ['handoff', 'fallback']) {
  const unit = `deploy/systemd/baton-${service}.service`;
  // 2.0 is "OK" in the words of systemd; what remains is network access and W^X, which V8 can't have.
  run(`systemd unit of ${service} (security)`, 'systemd-analyze', ['security', '--offline=true', '--threshold=20', unit]);
  // It refuses programs that do not exist, so it looks for them here.
  const folder = mkdtempSync(join(tmpdir(), 'baton-units-'));
  const copy = join(folder, `baton-${service}.service`);
  writeFileSync(copy, readFileSync(`${root}${unit}`, 'utf8').replaceAll('/opt/baton/', root));
  run(`systemd unit of ${service}`, 'systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', copy]);
  rmSync(folder, { recursive: true });
}

process.exitCode = failed ? 1 : 0;
