import { Search } from 'lucide-react';

import styles from './search.module.css';

interface SearchFieldProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
}

/** A field for a search, at the top of a panel whose content it filters. */
export function SearchField({ label, placeholder, value, onChange }: SearchFieldProps) {
  return (
    <search className={styles.search}>
      <Search size={15} aria-hidden="true" />
      <input type="search" aria-label={label} placeholder={placeholder} value={value} onChange={({ target }) => onChange(target.value)} />
    </search>
  );
}
