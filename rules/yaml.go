package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// readYAML returns the tree of a YAML document.
func readYAML(data []byte) (node, Problems) {
	r := yamlReader{data: data, end: placeOf(data, len(data))}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(depthLimit{}))
	if err != nil {
		return node{}, r.fail(err)
	}
	var root, another yaml.Node
	if err := loader.Load(&root); errors.Is(err, io.EOF) {
		return node{place: place{1, 1}, kind: document.Null}, nil
	} else if err != nil {
		return node{}, r.fail(err)
	}
	if err := loader.Load(&another); err == nil {
		return node{}, Problems{r.place(another.Line, another.Column).problem("",
			"a second document begins here: make it a file of its own or join the two")}
	} else if !errors.Is(err, io.EOF) {
		return node{}, r.fail(err)
	}
	return r.node(root.Content[0]), nil
}

type yamlReader struct {
	data []byte
	end  place // of the document
}

// place returns a place that the parser gives. Where something is missing at
// the end, the parser sees a last line that is not there.
func (r yamlReader) place(line, column int) place {
	if line > r.end.line {
		return r.end
	}
	return place{max(1, line), max(1, column)}
}

// node returns a tree. The types of plain scalars are found here, not by the parser,
// which holds on to some of YAML 1.1.
func (r yamlReader) node(y *yaml.Node) node {
	n := node{place: r.place(y.Line, y.Column), text: y.Value, fault: unsupported(y)}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = document.Mapping
		for i := 0; i < len(y.Content); i += 2 {
			n.entries = append(n.entries, entry{r.key(y.Content[i]), r.node(y.Content[i+1])})
		}
	case yaml.SequenceNode:
		n.kind = document.List
		for _, item := range y.Content {
			n.items = append(n.items, r.node(item))
		}
	case yaml.ScalarNode:
		n.kind = document.Text
		if isPlain(y) {
			n.kind = document.PlainType(y.Value)
		}
	default:
		n.kind = kindUnread
	}
	return n
}

func (r yamlReader) key(y *yaml.Node) node {
	key := r.node(y)
	if key.text == mergeKey && isPlain(y) {
		key.fault = "is a merge key, which is not supported: write the fields out"
	}
	return key
}

// mergeKey is the key that merges mappings in YAML 1.1.
const mergeKey = "<<"

func isPlain(y *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return y.Style&quoted == 0
}

// unsupported returns what a node has that documents do without: what makes a
// rule say other than what is written, or more than was written.
func unsupported(y *yaml.Node) string {
	switch {
	case y.Kind == yaml.AliasNode:
		return fmt.Sprintf("is an alias, which is not supported: write out what %s stands for", rule.Quote("*"+y.Value))
	case y.Anchor != "":
		return fmt.Sprintf("has an anchor, which is not supported: remove %s", rule.Quote("&"+y.Anchor))
	case y.Style&yaml.TaggedStyle != 0 || y.Tag == "!":
		return fmt.Sprintf("has a tag, which is not supported: remove %s", rule.Quote(y.Tag))
	default:
		return ""
	}
}

// fail returns an error of the parser as a problem.
func (r yamlReader) fail(err error) Problems {
	const prefix = "the document cannot be read as YAML: "
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return Problems{place{1, 1}.problem("", prefix+err.Error())}
	}
	message := prefix + load.Message
	if strings.HasPrefix(load.Message, unknownAnchor) { // it goes on with the name, which may be anything
		message = prefix + unknownAnchor
	}
	if load.ContextMsg != "" && load.ContextMark.Line > 0 {
		message += fmt.Sprintf(" (%s that begins on line %d)", load.ContextMsg, load.ContextMark.Line)
	}
	at := r.place(load.Mark.Line, load.Mark.Column)
	return Problems{at.problem("", message+r.advice(load.Mark, load.Message))}
}

// unknownAnchor is how the parser begins to say that an alias refers to nothing.
const unknownAnchor = "unknown anchor"

// advice is for mistakes that the parser has no helpful words for: where it
// stumbled says more than its message.
func (r yamlReader) advice(mark yaml.Mark, message string) string {
	text := []rune(string(r.data)) // the mark's index counts characters
	at := func(i int) rune {
		if i < 0 || i >= len(text) {
			return 0
		}
		return text[i]
	}
	quotes := func(first rune) string { return fmt.Sprintf("; put text that begins with %q in quotes", string(first)) }
	switch found := at(mark.Index); {
	case found == '\t':
		return "; indent with spaces, not tabs"
	case found == '%' && mark.Column == 1:
		return "; remove the directive, it is not needed"
	case found != 0 && strings.ContainsRune("*!@`%", found):
		return quotes(found)
	case at(mark.Index-1) == '*', strings.HasPrefix(message, unknownAnchor):
		return quotes('*')
	case found == ':':
		return `; check the indentation, and put text with a ": " in it in quotes`
	case found == '\\':
		return "; double the backslash or use single quotes"
	case strings.HasSuffix(message, "expected key"), strings.HasSuffix(message, "'-' indicator"):
		return "; check the indentation"
	case strings.HasSuffix(message, "unexpected end of stream"):
		return "; close the quotes"
	default:
		return ""
	}
}

// depthLimit keeps the parser from nesting deeper than maxDepth.
type depthLimit struct{}

func (depthLimit) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return errTooDeep
	}
	return nil
}

func (depthLimit) CheckAlias(int, int) error { return nil } // aliases are never expanded
