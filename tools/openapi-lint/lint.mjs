// Runs both linters on every committed API description, with their recommended rules. Warnings count as errors.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const descriptions = readdirSync(`${here}../../openapi`)
  .filter((name) => name.endsWith('.json'))
  .map((name) => `../../openapi/${name}`)
  .sort();

/** Turns off telemetry and the check for newer versions. */
const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', DO_NOT_TRACK: '1' };

/** Runs a linter of this folder on this Node; returns its exit code and output. */
function run(file, args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`node_modules/${file}`, ...args], { cwd: here, env, encoding: 'utf8' });
  return { status, stdout, stderr };
}

function redocly(description) {
  const { stdout, stderr } = run('@redocly/cli/bin/cli.js', ['lint', description, '--extends=recommended', '--format=json']);
  try {
    const { problems } = JSON.parse(stdout);
    return problems.map(({ severity, ruleId, message, location }) => `${severity} ${ruleId} ${location?.[0]?.pointer ?? ''}: ${message}`);
  } catch {
    return [`it did not run: ${stderr || stdout}`];
  }
}

function spectral(description) {
  const { status, stdout, stderr } = run('@stoplight/spectral-cli/dist/index.js', [
    'lint',
    description,
    '--ruleset=spectral.json',
    '--format=json',
    '--quiet',
  ]);
  try {
    const severities = ['error', 'warning', 'information', 'hint'];
    return JSON.parse(stdout).map(({ severity, code, message, path }) => `${severities[severity]} ${code} ${path.join('/')}: ${message}`);
  } catch {
    return [`it did not run (exit code ${status}): ${stderr || stdout}`];
  }
}

/** Accepted problems. */
const accepted = [
  // An upgrade to WebSocket succeeds with 101 (RFC 6455, 4.2.2) and has no 2xx.
  /^warn operation-2xx-response #\/paths\/~1ws\/get\//,
  /^warning operation-success-response paths\/\/ws\/get\//,
  // Spectral takes the field `examples` of a contract, in an example or a schema, for the examples of a media type.
  /^error oas3-valid-media-example \S+\/(example|properties)\/(\S+\/)?examples\//,
];

let problems = 0;
for (const description of descriptions) {
  for (const [name, lint] of Object.entries({ Redocly: redocly, Spectral: spectral })) {
    const found = lint(description).filter((line) => !accepted.some((pattern) => pattern.test(line)));
    problems += found.length;
    console.log(`${name} on ${description.replace('../../', '')}: ${found.length === 0 ? 'no problems' : `${found.length} problems`}`);
    for (const line of found) console.log(`  ${line}`);
  }
}
if (descriptions.length === 0) console.log('There is no description in openapi/.');
process.exit(problems > 0 || descriptions.length === 0 ? 1 : 0);
