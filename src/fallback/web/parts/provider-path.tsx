import { ChevronRight } from 'lucide-react';

import styles from './provider-path.module.css';

/** The providers of a chain in order. If there are more than `most`, the last one stays visible. */
export function ProviderPath({ providers, most = 4 }: { providers: readonly { name: string; model_id: string }[]; most?: number }) {
  const shown = providers.length <= most ? providers : [...providers.slice(0, most - 1), providers.at(-1)!];
  const left = providers.length - shown.length;
  return (
    <ol className={styles.path}>
      {shown.map(({ name, model_id }, index) => (
        <li key={name}>
          {index === 0 ? null : <ChevronRight size={13} aria-hidden="true" />}
          {left > 0 && index === shown.length - 1 ? (
            <>
              <span className={styles.more}>{left} more</span>
              <ChevronRight size={13} aria-hidden="true" />
            </>
          ) : null}
          <span className={styles.name} title={model_id}>
            {name}
          </span>
        </li>
      ))}
    </ol>
  );
}
