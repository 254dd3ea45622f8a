// What CodeMirror's commands and completion need of @codemirror/language, for a text without a grammar:
// this stands in its place, as parsers are a fifth of the whole. A new line is indented as the one before.
import { Facet, countColumn } from "@codemirror/state";

export const indentUnit = Facet.define({ combine: (values) => values[0] ?? "  " });
export const getIndentUnit = () => 2;
export const indentString = (_, columns) => " ".repeat(columns);
export const getIndentation = ({ state }, at) => countColumn(/^\s*/.exec(state.doc.lineAt(at).text)[0], state.tabSize);

export class IndentContext {
  constructor(state) { this.state = state; }
}

const nothing = { childBefore: () => null, childAfter: () => null, parent: null, type: { prop: () => null } };
export const syntaxTree = () => ({ resolveInner: () => nothing, resolve: () => nothing, iterate() {}, topNode: nothing });
export const matchBrackets = () => null;
