// A function has at most 60 lines of its own: those of the functions in it are theirs.
const most = 60;

const functions = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

const ownLines = {
  create(context) {
    /** The functions around the current node, outermost first, each with the lines of the functions in it. */
    const open = [];
    const enter = () => open.push({ inner: 0 });
    const leave = (node) => {
      const { inner } = open.pop();
      const lines = node.loc.end.line - node.loc.start.line + 1;
      if (lines - inner > most) context.report({ node, message: `The function has ${lines - inner} lines of its own, more than ${most}.` });
      // The line of a short function is also the outer one's.
      if (open.length > 0 && lines > 1) open.at(-1).inner += lines;
    };
    return Object.fromEntries(
      functions.flatMap((type) => [
        [type, enter],
        [`${type}:exit`, leave],
      ]),
    );
  },
};

// biome-ignore lint/style/noDefaultExport: oxlint reads a plugin from its default export.
export default { meta: { name: 'baton' }, rules: { 'own-lines': ownLines } };
