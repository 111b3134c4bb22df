import { Bars } from '../../../kit/web/charts/bars.tsx';
import { seriesColor } from '../../../kit/web/charts/series.ts';
import { Columns, Panel } from '../../../kit/web/components/layout.tsx';
import { count, durationText, percent } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';

const percentiles = ['min', 'p50', 'p90', 'p95', 'p99', 'max'] as const;

/** Charts of latency by percentile and of prompts by serving provider. */
export function ResultCharts({ result }: { result: TestResult }) {
  const { latency_ms, providers } = result;
  const share = (prompts: number) => `${percent(prompts / result.progress.done)} · ${count(prompts)}`;
  const served = providers.reduce((sum, provider) => sum + provider.served, 0);
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
        <Bars
          label="Prompts served by provider"
          items={[
            ...providers.map(({ name, served: own }, index) => ({
              name,
              value: own,
              text: share(own),
              color: seriesColor(index),
            })),
            ...(served < result.progress.done
              ? [
                  {
                    name: 'nobody',
                    value: result.progress.done - served,
                    text: share(result.progress.done - served),
                    color: '--bad',
                  },
                ]
              : []),
          ]}
        />
      </Panel>
    </Columns>
  );
}
