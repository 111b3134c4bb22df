import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

const chart = fileURLToPath(new URL('../../deploy/helm/', import.meta.url));

/** What `helm template` renders, for the newest Kubernetes, of a release `baton` in the namespace `agents`, by kind; or its error. */
function render(values: readonly string[]) {
  const sets = values.flatMap((value) => ['--set', value]);
  const { status, stdout, stderr } = spawnSync(
    'helm',
    ['template', 'baton', chart, '--namespace', 'agents', '--kube-version', '1.37.0', ...sets],
    {
      encoding: 'utf8',
    },
  );
  const objects = parseAllDocuments(stdout).map((document) => document.toJS());
  return {
    status,
    stderr,
    objects: Object.fromEntries(objects.filter((object) => object !== null).map((object) => [object.kind, object])),
  };
}

describe('The Helm chart, rendered', () => {
  test('passes the strict lint of Helm', () => {
    const { status, stdout } = spawnSync('helm', ['lint', '--strict', chart, '--set', 'secretName=baton'], { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
  });

  test('runs two instances without root, drains them before they are killed, and keeps one when nodes go', () => {
    const { status, stderr, objects } = render(['secretName=baton', 'redisUrl=redis://redis:6379', 'serviceMonitor.enabled=true']);
    assert.equal(status, 0, stderr);
    assert.deepEqual(Object.keys(objects).sort(), ['Deployment', 'PodDisruptionBudget', 'Service', 'ServiceMonitor']);
    const { Deployment, PodDisruptionBudget, Service, ServiceMonitor } = objects;
    assert.equal(Deployment.spec.replicas, 2);
    const { spec: pod, metadata } = Deployment.spec.template;
    const [container] = pod.containers;
    assert.equal(pod.securityContext.runAsNonRoot, true);
    assert.deepEqual(
      [container.securityContext.readOnlyRootFilesystem, container.volumeMounts[0].mountPath, pod.volumes[0].emptyDir !== undefined],
      [true, '/tmp', true],
    );
    const environment = Object.fromEntries(
      container.env.map(({ name, value, valueFrom }: Record<string, unknown>) => [name, value ?? valueFrom]),
    );
    assert.deepEqual(environment.SERVICE_DATABASE_URL, { secretKeyRef: { name: 'baton', key: 'SERVICE_DATABASE_URL' } });
    assert.equal(environment.SERVICE_REDIS_URL, 'redis://redis:6379');
    assert.equal(environment.SERVICE_ALLOWED_HOSTS, 'baton,baton.agents,baton.agents.svc,baton.agents.svc.cluster.local');
    assert.equal(environment.SERVICE_DRAIN_SECONDS, '5');
    assert.equal(pod.terminationGracePeriodSeconds, 20);
    assert.equal(container.livenessProbe.httpGet.path, '/health');
    assert.equal(container.readinessProbe.httpGet.path, '/ready');
    assert.equal(PodDisruptionBudget.spec.maxUnavailable, 1);
    assert.equal(ServiceMonitor.spec.endpoints[0].authorization.credentials.key, 'SERVICE_METRICS_TOKEN');
    for (const selector of [Deployment.spec.selector, PodDisruptionBudget.spec.selector].map((one) => one.matchLabels))
      for (const [name, value] of Object.entries(selector)) assert.equal(metadata.labels[name], value);
    for (const [name, value] of Object.entries(Service.spec.selector)) assert.equal(metadata.labels[name], value);
  });

  test('gives a longer drain more time, takes further settings, and refuses unknown values and a missing Secret', () => {
    const { objects } = render(['secretName=baton', 'drainSeconds=30', 'replicas=1', 'settings.SERVICE_HOURLY_QUOTA_BUSINESS=1000000']);
    const { spec } = objects.Deployment.spec.template;
    assert.equal(spec.terminationGracePeriodSeconds, 45);
    const further = spec.containers[0].env.find(({ name }: { name: string }) => name === 'SERVICE_HOURLY_QUOTA_BUSINESS');
    assert.equal(further.value, '1000000');
    assert.equal(objects.PodDisruptionBudget, undefined);
    for (const [values, problem] of [
      [[], /secretName is missing/],
      [['secretName=baton', 'replica=3'], /replica/],
      [['secretName=baton', 'settings.SERVICE_PORT=1'], /settings\.SERVICE_PORT/],
    ] as const) {
      const { status, stderr } = render(values);
      assert.notEqual(status, 0);
      assert.match(stderr, problem);
    }
  });
});
