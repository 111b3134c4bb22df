import { useMemo } from 'react';

import { counted, durationText } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import { labelled } from './labels.ts';
import styles from './scenario-grid.module.css';

interface ScenarioGridProps {
  result: TestResult;
  chosen: string | null;
  onChoose: (scenario: string | null) => void;
}

/** A tile for each scenario of the plan with its outcome, provider and duration. Selecting one filters the prompts. */
export function ScenarioGrid({ result, chosen, onChoose }: ScenarioGridProps) {
  const scenarios = useMemo(() => [...Map.groupBy(result.results, ({ scenario }) => scenario)], [result.results]);
  const first = result.chain.providers[0]?.name;
  return (
    <ul className={styles.grid}>
      {scenarios.map(([name, prompts]) => {
        const lost = prompts.filter(({ success }) => !success).length;
        const servers = [...new Set(prompts.flatMap(({ served_by }) => served_by ?? []))];
        const outcome = lost > 0 ? 'lost' : servers.some((provider) => provider !== first) ? 'fallback' : 'first';
        return (
          <li key={name}>
            <button
              type="button"
              className={styles.tile}
              data-outcome={outcome}
              aria-pressed={chosen === name}
              onClick={() => onChoose(chosen === name ? null : name)}
            >
              <span className={styles.name}>{labelled(name)}</span>
              <span className={styles.outcome}>
                {lost === 0 ? 'all served' : `${counted(lost, 'prompt')} lost`}
                {servers.length === 0 ? '' : ` · ${servers.join(', ')}`}
              </span>
              <span className={`${styles.figures} tabular`}>
                {counted(prompts.length, 'prompt')} · slowest {durationText(Math.max(...prompts.map(({ latency_ms }) => latency_ms)))}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
