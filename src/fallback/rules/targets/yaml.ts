import { type DocumentOptions, type ParseOptions, parse, type ScalarTag, type SchemaOptions, stringify, type Tags } from 'yaml';

import { type ImportFormat, targets } from '../../model/targets.ts';

/** What only YAML 1.1 has, and JSON has not: a date stays the text that it is in the file. */
const beyondJson = /:(timestamp|binary|omap|pairs|set)$/;

/** The booleans of PyYAML: those of YAML 1.1 without the letters `y` and `n`. */
const booleans = [/^(?:[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/, /^(?:[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/] as const;

function asPyYaml(tags: Tags): Tags {
  return tags.flatMap((tag): Tags => {
    if (typeof tag === 'string') return [tag];
    if (beyondJson.test(tag.tag)) return [];
    if (!tag.tag.endsWith(':bool')) return [tag];
    return [{ ...(tag as ScalarTag), test: booleans[tag.identify?.(true) ? 0 : 1] }];
  });
}

/** How the YAML of a format is read: version 1.1, as PyYAML reads it, or 1.2 with the merge key `<<` of 1.1. */
export const yamlOptions = (format: ImportFormat): ParseOptions & DocumentOptions & SchemaOptions =>
  targets[format].yaml === '1.1' ? { version: '1.1', customTags: asPyYaml } : { schema: 'core', merge: true };

/** The value of a file in YAML or JSON. @throws Error if it is neither */
export const parseFile = (text: string, format: ImportFormat): unknown => parse(text, yamlOptions(format));

/** A YAML document without anchors and line folding. Most programs read YAML 1.1, where `2024-10-21` is a date and `on` a boolean. */
export const yamlText = (value: unknown) => stringify(value, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
