// The editor of documents: CodeMirror with what documents need, bundled into ../assets/editor.js by
// "make console-editor". Marks of mistakes and colours are a few lines here rather than packages, which
// would double its size.
import { EditorState, StateEffect, StateField, RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, keymap, lineNumbers, drawSelection } from "@codemirror/view";
import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";

const setMistakes = StateEffect.define();

// mistakes marks the lines that have one.
const mistakes = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    marks = marks.map(change.changes);
    for (const effect of change.effects) {
      if (!effect.is(setMistakes)) continue;
      const lines = [...new Set(effect.value.map((m) => m.line))].filter((n) => n <= change.state.doc.lines);
      marks = Decoration.set(lines.sort((a, b) => a - b).map((n) => mistake.range(change.state.doc.line(n).from)));
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});
const mistake = Decoration.line({ class: "mistake" });

const key = Decoration.mark({ class: "key" }), comment = Decoration.mark({ class: "comment" });
const token = /(#.*)$|([A-Za-z][\w.]*)(?=:(?:\s|$))/g;

// colours marks keys and comments in the lines that are seen.
const colours = ViewPlugin.fromClass(
  class {
    constructor(view) { this.marks = this.find(view); }
    update(change) { if (change.docChanged || change.viewportChanged) this.marks = this.find(change.view); }
    find(view) {
      const found = new RangeSetBuilder();
      for (const { from, to } of view.visibleRanges) {
        for (const m of view.state.sliceDoc(from, to).matchAll(new RegExp(token, "gm"))) {
          found.add(from + m.index, from + m.index + m[0].length, m[1] ? comment : key);
        }
      }
      return found.finish();
    }
  },
  { decorations: (plugin) => plugin.marks },
);

// edit makes an editor in a shadow root, where its styles are allowed by the policy of the page.
export function edit({ parent, text, readOnly, changed, complete }) {
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), drawSelection(), mistakes, colours, EditorState.tabSize.of(2),
        autocompletion({ override: [complete], icons: false }),
        keymap.of([...completionKeymap, ...historyKeymap, ...standardKeymap]),
        EditorState.readOnly.of(readOnly),
        EditorView.contentAttributes.of({ "aria-label": "text of the document" }),
        EditorView.updateListener.of((change) => { if (change.docChanged) changed(); }),
        theme,
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    mark: (found) => view.dispatch({ effects: setMistakes.of(found) }),
    go: (line, column) => {
      const at = view.state.doc.line(Math.min(line, view.state.doc.lines));
      view.dispatch({ selection: { anchor: Math.min(at.to, at.from + column - 1) }, scrollIntoView: true });
      view.focus();
    },
  };
}

const theme = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "var(--card)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'JetBrains Mono', SFMono-Regular, Menlo, monospace", lineHeight: "1.6", minHeight: "280px", maxHeight: "65vh" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--ink-3)", border: "0" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { background: "var(--pass-soft) !important" },
  ".key": { color: "var(--pass)" },
  ".comment": { color: "var(--ink-3)" },
  ".mistake": { backgroundColor: "var(--refuse-soft)", boxShadow: "inset 3px 0 var(--refuse)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", border: "1px solid var(--line)", color: "var(--ink)", maxWidth: "420px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--ink)", outline: "1px solid var(--pass)" },
  ".cm-completionDetail": { color: "var(--ink-2)", fontStyle: "normal" },
  ".cm-completionInfo": { padding: "6px 10px" },
});
