import Type, { type TSchema } from 'typebox';
import { name, object, orNull } from '../../kit/schemas.ts';

/** The query of a list of documents, by name. */
export const pageQuery = object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'The maximum number of items to return; 50 if left out.' })),
  cursor: Type.Optional(name('The `next_cursor` of the previous page.')),
});

/** A response with a page of documents under the name `noun`. */
export const pageOf = <const Noun extends string, Item extends TSchema>(noun: Noun, schema: Item, example: unknown) => ({
  schema: Type.Object({ [noun]: Type.Array(schema), next_cursor: orNull(Type.String()) } as {
    [Name in Noun]: Type.TArray<Item>;
  } & { next_cursor: Type.TUnion<[Type.TString, Type.TNull]> }),
  description: `A page of ${noun}.`,
  example: { [noun]: [example], next_cursor: null },
});
