import { useMemo } from 'react';

import { counted, durationText } from '../../../kit/web/format.ts';
import type { PromptResult, TestResult } from '../../model/test.ts';
import styles from './scenario-grid.module.css';

interface Scenario {
  readonly name: string;
  readonly prompts: number;
  readonly lost: number;
  readonly servedBy: ReadonlyMap<string, number>;
  readonly slowestMs: number;
}

function scenariosOf(results: readonly PromptResult[]): Scenario[] {
  const found = new Map<string, { prompts: number; lost: number; servedBy: Map<string, number>; slowestMs: number }>();
  for (const { scenario, success, served_by, latency_ms } of results) {
    const own = found.get(scenario) ?? { prompts: 0, lost: 0, servedBy: new Map<string, number>(), slowestMs: 0 };
    own.prompts += 1;
    if (!success) own.lost += 1;
    if (served_by !== null) own.servedBy.set(served_by, (own.servedBy.get(served_by) ?? 0) + 1);
    own.slowestMs = Math.max(own.slowestMs, latency_ms);
    found.set(scenario, own);
  }
  return [...found].map(([name, own]) => ({ name, ...own }));
}

interface ScenarioGridProps {
  result: TestResult;
  chosen: string | null;
  onChoose(scenario: string | null): void;
}

/** A tile for each scenario of the plan with its outcome, provider and duration. Selecting one filters the prompts. */
export function ScenarioGrid({ result, chosen, onChoose }: ScenarioGridProps) {
  const scenarios = useMemo(() => scenariosOf(result.results), [result.results]);
  const first = result.chain.providers[0]?.name;
  return (
    <ul className={styles.grid}>
      {scenarios.map(({ name, prompts, lost, servedBy, slowestMs }) => {
        const outcome = lost > 0 ? 'lost' : [...servedBy.keys()].some((provider) => provider !== first) ? 'fallback' : 'first';
        return (
          <li key={name}>
            <button
              type="button"
              className={styles.tile}
              data-outcome={outcome}
              aria-pressed={chosen === name}
              onClick={() => onChoose(chosen === name ? null : name)}
            >
              <span className={styles.name}>{name}</span>
              <span className={styles.outcome}>
                {lost === 0 ? 'all served' : `${counted(lost, 'prompt')} lost`}
                {servedBy.size === 0 ? '' : ` · ${[...servedBy.keys()].join(', ')}`}
              </span>
              <span className={`${styles.figures} tabular`}>
                {counted(prompts, 'prompt')} · slowest {durationText(slowestMs)}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
