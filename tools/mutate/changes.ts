import { parseSync } from 'vite';

/** A small wrong change to a source file: `text` instead of the expression or statement from `start` to `end`. */
export interface Change {
  readonly start: number;
  readonly end: number;
  /** Where the line begins that people should look at. */
  readonly at: number;
  /** The other expression; undefined for a statement, which is left out. */
  readonly text: string | undefined;
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

/** Types and imports have no behaviour. */
const isSkipped = ({ type }: Node) => (type.startsWith('TS') && !typeless.has(type)) || type === 'ImportDeclaration';

/** Nodes of TypeScript with an expression in them. */
const typeless = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);

/**
 * The changes that a file allows, in the order of the text: another operator, a condition that always or never holds, a number
 * one higher, a boolean turned, a statement left out, an array without its filter.
 */
export function changesOf(source: string): Change[] {
  const changes: Change[] = [];
  const add = ({ start, end }: Node, text: string | undefined, kind: string, at = start) => changes.push({ start, end, at, text, kind });
  const textOf = ({ start, end }: Node) => source.slice(start, end);

  function changesAt(node: Node, parent: Node | undefined): void {
    const { type } = node;
    if (type === 'BinaryExpression' || type === 'LogicalExpression') {
      const [left, right] = [node.left as Node, node.right as Node];
      const operator = node.operator as string;
      const other = operators[operator];
      // A sum of texts can't be a difference.
      if (other !== undefined && !(operator === '+' && [left, right].some(isText))) {
        const between = source.slice(left.end, right.start).replace(operator, other);
        // `a && b` beside `c || d` needs parentheses of its own.
        add(node, `(${textOf(left)})${between}(${textOf(right)})`, `${operator} is ${other}`, left.end);
      }
      if (operator === '??') add(node, textOf(left), '?? is left out', left.end);
    }
    if (type === 'IfStatement' || type === 'ConditionalExpression')
      for (const value of ['true', 'false']) add(node.test as Node, `(${textOf(node.test as Node)}, ${value})`, `a condition is ${value}`);
    if (type === 'UnaryExpression' && node.operator === '!') add(node, textOf(node.argument as Node), '! is left out');
    // The name of a property is no value.
    const isKey = parent?.key === node && parent.computed !== true;
    if (type === 'Literal' && typeof node.value === 'boolean' && !isKey) add(node, String(!node.value), 'a boolean is turned');
    if (type === 'Literal' && typeof node.value === 'number' && !isKey) add(node, String(node.value + 1), 'a number is one higher');
    if (type === 'ExpressionStatement' || type === 'ThrowStatement') add(node, undefined, 'a statement is left out');
    if (type === 'CallExpression' && parent?.type !== 'ChainExpression') {
      const { property, object } = node.callee as Node & { property?: Node & { name?: string }; object?: Node };
      if (property?.name === 'filter' && object !== undefined) add(node, textOf(object), 'a filter is left out', object.end);
    }
  }

  const visit = (node: Node, parent?: Node): void => {
    if (isSkipped(node)) return;
    changesAt(node, parent);
    for (const child of childrenOf(node)) visit(child, node);
  };
  visit(parseSync('source.ts', source).program as unknown as Node);
  return changes.sort((one, other) => one.at - other.at);
}

/** Whether an expression is a text. */
const isText = ({ type, value }: Node) => type === 'TemplateLiteral' || (type === 'Literal' && typeof value === 'string');

/**
 * A source file in which each of some changes can be switched on: `$change(ID)` (`switches.ts`) tells whether it is, and notes
 * that its place was reached.
 */
export function withSwitches(source: string, changes: readonly (Change & { readonly id: number })[]): string {
  const sorted = [...changes].sort((one, other) => one.start - other.start || other.end - one.end);

  /** The text from `start` to `end` with the changes of `sorted` from `next` on that lie in it. */
  function render(start: number, end: number, next: number): string {
    let text = '';
    let at = start;
    let index = next;
    for (let change = sorted[index]; change !== undefined && change.start < end; change = sorted[index]) {
      text += source.slice(at, change.start);
      const same = sorted.slice(index).filter((other) => other.start === change.start && other.end === change.end);
      index += same.length;
      let inner = render(change.start, change.end, index);
      for (const { id, text: other } of same)
        inner = other === undefined ? `{ if (!$change(${id})) ${inner} }` : `($change(${id}) ? (${other}) : (${inner}))`;
      text += inner;
      at = change.end;
      while ((sorted[index]?.start ?? end) < change.end) index += 1;
    }
    return text + source.slice(at, end);
  }
  return render(0, source.length, 0);
}
