import type { FormField } from '../model/form.ts';
import { defaultTexts, type FieldChoice, fieldChoices, fieldType } from '../model/form-values.ts';
import { escapeHtml } from '../rules/html.ts';

const inputTypes = { email: 'email', uri: 'url', date: 'date', 'date-time': 'text' } as const;

const yesOrNo = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
];

/** A field of a question's form as HTML. @param entered what the person entered before; the default if left out */
export function formField(name: string, field: FormField, isRequired: boolean, entered: readonly string[] = defaultTexts(field)): string {
  const { title = name, description } = field;
  const type = fieldType(field);
  const help = description === undefined ? '' : `<small dir="auto">${escapeHtml(description)}</small>`;
  const head = `<span dir="auto">${escapeHtml(title)}</span>${isRequired ? '' : ' <span class="muted">(optional)</span>'}`;
  const control = `name="data.${escapeHtml(name)}"`;
  const choices = type === 'boolean' ? yesOrNo : fieldChoices(field);
  if (choices !== undefined && type === 'array')
    return `<fieldset><legend>${head}</legend>${help && `<p class="muted">${help}</p>`}${checks(choices, control, entered)}</fieldset>`;
  const must = isRequired ? ' required' : '';
  const value = entered[0] ?? '';
  const input = choices === undefined ? inputOf(field, `${control}${must}`, value) : selectOf(choices, `${control}${must}`, value);
  return `<label>${head}${help}${input}</label>`;
}

const checks = (choices: readonly FieldChoice[], control: string, entered: readonly string[]) =>
  choices
    .map(({ value, label }) => {
      const checked = entered.includes(String(value)) ? ' checked' : '';
      return `<label class="check" dir="auto"><input type="checkbox" ${control} value="${escapeHtml(String(value))}"${checked}>${escapeHtml(label)}</label>`;
    })
    .join('');

function selectOf(choices: readonly FieldChoice[], control: string, entered: string): string {
  const items = choices.map(({ value, label }) => {
    const text = String(value);
    return `<option value="${escapeHtml(text)}"${text === entered ? ' selected' : ''}>${escapeHtml(label)}</option>`;
  });
  return `<select ${control}><option value=""></option>${items.join('')}</select>`;
}

function inputOf(field: FormField, control: string, value: string): string {
  const { format, minLength, maxLength, minimum, maximum } = field;
  const type = fieldType(field);
  const bounds = [
    ['minlength', minLength],
    ['maxlength', maxLength],
    ['min', minimum],
    ['max', maximum],
    ['step', type === 'number' ? 'any' : undefined],
  ].flatMap(([attribute, bound]) => (bound === undefined ? [] : [` ${attribute}="${bound}"`]));
  const kind = type === 'string' ? (format === undefined ? 'text' : inputTypes[format]) : 'number';
  return `<input type="${kind}" ${control} value="${escapeHtml(value)}"${bounds.join('')}>`;
}
