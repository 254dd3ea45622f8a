package console

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// linker makes one script of modules: a browser asks once, and what is alike in them is compressed once. Each
// module becomes a function that is called once, after those of the modules that it imports. It knows the
// forms of import and export that the page uses, and refuses others.
type linker struct {
	read func(name string) ([]byte, error)

	out  bytes.Buffer
	done []string // modules that are written
	path []string // modules that are being written, each imported by the one before
}

// link returns the script of a module.
func link(entry string, read func(name string) ([]byte, error)) ([]byte, error) {
	l := linker{read: read}
	err := l.add(entry)
	return l.out.Bytes(), err
}

func (l *linker) add(name string) error {
	switch {
	case slices.Contains(l.done, name):
		return nil
	case slices.Contains(l.path, name):
		return fmt.Errorf("console: modules import each other: %s", strings.Join(append(l.path, name), ", "))
	}
	text, err := l.read(name)
	if err != nil {
		return err
	}
	l.path = append(l.path, name)
	var body strings.Builder
	var exported []string
	for line := range strings.Lines(string(lean(text, ".js"))) {
		line, err := l.statement(line, &exported)
		if err != nil {
			return fmt.Errorf("console: %s: %w", name, err)
		}
		body.WriteString(line)
	}
	l.path = l.path[:len(l.path)-1]
	l.done = append(l.done, name)
	fmt.Fprintf(&l.out, "const %s = (() => {\n%sreturn { %s };\n})();\n", variable(name), body.String(), strings.Join(exported, ", "))
	return nil
}

// statement returns a line as it stands in a function, adds the modules that it imports, and remembers what it
// exports.
func (l *linker) statement(line string, exported *[]string) (string, error) {
	if rest, ok := strings.CutPrefix(line, "import "); ok {
		names, from, ok := strings.Cut(strings.TrimSpace(rest), ` from "./`)
		module, ends := strings.CutSuffix(from, `";`)
		if !ok || !ends || strings.Contains(names, " as ") {
			return "", fmt.Errorf("an import that is not of names of a module: %s", line)
		}
		return fmt.Sprintf("const %s = %s;\n", names, variable(module)), l.add(module)
	}
	rest, ok := strings.CutPrefix(line, "export ")
	if !ok {
		return line, nil
	}
	words := strings.FieldsFunc(strings.TrimPrefix(rest, "async "), func(r rune) bool { return strings.ContainsRune(" (={", r) })
	if len(words) < 2 || !slices.Contains([]string{"const", "function", "class"}, words[0]) {
		return "", fmt.Errorf("an export that is no const, function or class: %s", line)
	}
	*exported = append(*exported, words[1])
	return rest, nil
}

// variable returns the name of the variable that has what a module exports.
func variable(module string) string { return "$" + strings.TrimSuffix(module, ".js") }
