import { Columns, Panel } from '../../../kit/web/components/layout.tsx';
import { count, durationText, percent } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import { Bars } from './bars.tsx';
import { seriesColor } from './series.ts';

const percentiles = ['min', 'p50', 'p90', 'p95', 'p99', 'max'] as const;

/** Charts of latency by percentile and of prompts by serving provider. */
export function ResultCharts({ result: { latency_ms, providers, progress } }: { result: TestResult }) {
  const share = (name: string, prompts: number, color: string) => ({
    ...{ name, value: prompts, color },
    text: `${percent(prompts / progress.done)} · ${count(prompts)}`,
  });
  const lost = progress.done - providers.reduce((sum, { served }) => sum + served, 0);
  const servers = providers.map(({ name, served }, index) => share(name, served, seriesColor(index)));
  return (
    <Columns min="24rem">
      <Panel title="Latency of prompts, end to end">
        {latency_ms === null ? null : (
          <Bars
            label="Latency percentiles"
            items={percentiles.map((name) => ({
              name,
              value: latency_ms[name],
              text: durationText(latency_ms[name]),
              color: '--series-1',
            }))}
          />
        )}
      </Panel>
      <Panel title="Who served, in prompts">
        <Bars label="Prompts served by provider" items={lost > 0 ? [...servers, share('nobody', lost, '--bad')] : servers} />
      </Panel>
    </Columns>
  );
}
