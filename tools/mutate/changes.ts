import { parseSync } from 'vite';

/** A small wrong change to a source file: `text` instead of what stands from `start` to `end`. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The kind of change in a few words. */
  readonly kind: string;
}

/** A node of the syntax tree (ESTree, as oxc makes it), with offsets in the text. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [name: string]: unknown;
}

/** The opposite or the neighbour of each operator. */
const operators: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
};

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value && 'start' in value;

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** Types and imports have no behaviour, and the text of an error or a log is for people. */
const isSkipped = ({ type }: Node) => type.startsWith('TSType') || type.startsWith('TSInterface') || type === 'ImportDeclaration';

/**
 * The changes that a file allows, in the order of the text: another operator, a condition that always or never holds, a number
 * one higher, a boolean turned, a statement left out, an array without its filter.
 */
export function changesOf(source: string): Change[] {
  const changes: Change[] = [];
  const add = (node: Pick<Node, 'start' | 'end'>, text: string, kind: string) =>
    changes.push({ start: node.start, end: node.end, text, kind });
  const textOf = ({ start, end }: Node) => source.slice(start, end);

  function changesAt(node: Node): void {
    const { type } = node;
    if (type === 'BinaryExpression' || type === 'LogicalExpression') {
      const [left, right] = [node.left as Node, node.right as Node];
      const operator = node.operator as string;
      const other = operators[operator];
      // A sum of texts can't be a difference.
      if (other !== undefined && !(operator === '+' && [left, right].some(isText)))
        add({ start: left.end, end: right.start }, source.slice(left.end, right.start).replace(operator, other), `${operator} is ${other}`);
      if (operator === '??') add({ start: left.end, end: node.end }, '', '?? is left out');
    }
    if (type === 'IfStatement' || type === 'ConditionalExpression')
      for (const value of ['true', 'false']) add(node.test as Node, `(${textOf(node.test as Node)}, ${value})`, `a condition is ${value}`);
    if (type === 'UnaryExpression' && node.operator === '!') add(node, textOf(node.argument as Node), '! is left out');
    if (type === 'Literal' && typeof node.value === 'boolean') add(node, String(!node.value), 'a boolean is turned');
    if (type === 'Literal' && typeof node.value === 'number') add(node, String(node.value + 1), 'a number is one higher');
    if (type === 'ExpressionStatement' || type === 'ThrowStatement') add(node, ';', 'a statement is left out');
    if (type === 'CallExpression') {
      const { property, object } = node.callee as Node & { property?: Node & { name?: string }; object?: Node };
      if (property?.name === 'filter' && object !== undefined) add({ start: object.end, end: node.end }, '', 'a filter is left out');
    }
  }

  const visit = (node: Node): void => {
    if (isSkipped(node)) return;
    changesAt(node);
    for (const child of childrenOf(node)) visit(child);
  };
  visit(parseSync('source.ts', source).program as unknown as Node);
  return changes.sort((one, other) => one.start - other.start);
}

/** Whether an expression is a text. */
const isText = ({ type, value }: Node) => type === 'TemplateLiteral' || (type === 'Literal' && typeof value === 'string');
