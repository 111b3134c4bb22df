// Without schemas, so that the command line can load it without the schema library.

/** An answer that a question proposes. */
interface Choice {
  /** What the answer contains. */
  readonly value: string;
  /** What is shown. */
  readonly label: string;
  /** Whether the answer is to be confirmed. */
  readonly isDangerous: boolean;
}

const isOptionObject = (option: unknown): option is { value: string; label?: unknown; style?: unknown } =>
  typeof option === 'object' && option !== null && typeof (option as { value?: unknown }).value === 'string';

const styles: readonly unknown[] = [undefined, 'default', 'danger'];

/** Whether a question may have this option. An object must be `{value, label?, style?}`; other JSON is shown as its text. */
export function isOption(option: unknown): boolean {
  if (typeof option !== 'object' || option === null || Array.isArray(option)) return true;
  if (!isOptionObject(option)) return false;
  const { label, style } = option;
  return (label === undefined || typeof label === 'string') && styles.includes(style);
}

/** The answers that the options of a question propose: texts, `{value, label?, style?}`, or other JSON as its text. */
export function choicesOf(options?: readonly unknown[] | null): Choice[] {
  return (options ?? []).map((option) => {
    if (isOptionObject(option)) {
      const { value, label, style } = option;
      return { value, label: typeof label === 'string' && label !== '' ? label : value, isDangerous: style === 'danger' };
    }
    const value = typeof option === 'string' ? option : JSON.stringify(option);
    return { value, label: value, isDangerous: false };
  });
}
