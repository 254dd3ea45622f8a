package penstock_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openPackages are the packages, with those below them, that work with rules of every
// kind alike, those of users included. They must not name a kind.
var openPackages = []string{"core", "inspect", "simulate", "metrics", "adapters", "cmd"}

// namesKinds are the files and folders of the open packages that name kinds of rules,
// and why. It should stay this short.
var namesKinds = []string{
	"adapters/adaptertest",        // a suite of tests: its rules are those that users have
	"adapters/sql/transaction.go", // the isolation of transactions is no kind
	"adapters/llm/pricerule.go",   // a kind of rules, which has a phase as all kinds do

	"cmd/penstock/internal/convert",            // translates Sentinel's kinds of rules into those here
	"cmd/penstock/internal/command/convert.go", // says which
	"cmd/penstock/internal/command/example.go", // shows how to ask for the example of one kind
	"cmd/penstock/internal/command/control.go", // shows how to switch off faults and to open a breaker
}

// otherMeanings are identifiers of other modules that have nothing to do with a kind.
var otherMeanings = []string{"FlowStyle"} // of YAML

// ordinaryWords are kinds whose name is also an ordinary word in the open packages: a fault
// is a mistake in rules or loads, too. Only an import of such a kind, its constant, and a
// text that is nothing but the name count as naming it.
var ordinaryWords = []string{"fault"}

func TestEngineNamesNoKindOfRules(t *testing.T) {
	names, visited := kindNames(t), 0
	eachFile(t, func(t *testing.T, file sourceFile) {
		if file.test || !within(openPackages, file.pkg) {
			return
		}
		visited++
		if within(namesKinds, file.path) {
			return
		}
		for _, found := range mentions(file, names) {
			assert.Fail(t, "a kind of rules is named outside of its folder",
				"%s %s: if that is a word here and not the kind, name the kind otherwise or add it to ordinaryWords", file.path, found)
		}
	})
	require.Greater(t, visited, 50, "the packages were not found")
}

// Each exception still names a kind: one that does not has to go.
func TestExceptionsNameKindsOfRules(t *testing.T) {
	names, used := kindNames(t), map[string]bool{}
	eachFile(t, func(_ *testing.T, file sourceFile) {
		for _, exception := range namesKinds {
			if !file.test && within([]string{exception}, file.path) && len(mentions(file, names)) > 0 {
				used[exception] = true
			}
		}
	})
	for _, exception := range namesKinds {
		assert.True(t, used[exception], "%s names no kind of rules: remove it from the exceptions", exception)
	}
}

func TestMentionsOfKindsAreFound(t *testing.T) {
	names := []string{"flow", "breaker"}
	for name, want := range map[string]bool{
		"flow": true, "FlowRule": true, "newFlowRule": true, "KindFlow": true, "penstock_flow_limit": true,
		"breaker:": true, "write `flow: []`": true, "circuitBreakers": true,
		"overflow": false, "Overflow": false, "workflow": false, "follow": false, "limit": false, "flowing": false,
	} {
		_, found := kindIn(name, names)
		assert.Equal(t, want, found, name)
	}
}

// kindNames returns the kinds of rules that come with Penstock, which are the names of
// their folders.
func kindNames(t *testing.T) (names []string) {
	t.Helper()
	eachFile(t, func(_ *testing.T, file sourceFile) {
		if layerOf(file.pkg) == kinds && !slices.Contains(names, kindFolder(file.pkg)) {
			names = append(names, kindFolder(file.pkg))
		}
	})
	require.Contains(t, names, "flow")
	return names
}

// mentions returns what in a file names a kind: imports, identifiers and texts.
func mentions(file sourceFile, names []string) (found []string) {
	for _, imported := range file.ownImports() {
		if slices.Contains(names, kindFolder(imported)) {
			found = append(found, "imports "+imported)
		}
	}
	seen := map[string]bool{}
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		text := ""
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			text = n.Name
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ = strconv.Unquote(n.Value)
			}
		}
		word, named := kindIn(text, names)
		if slices.Contains(ordinaryWords, word) && !slices.Contains([]string{word, "Kind" + strings.ToUpper(word[:1]) + word[1:]}, text) {
			named = false
		}
		if _, isName := node.(*ast.Ident); isName && slices.Contains(ordinaryWords, text) {
			named = false // a variable
		}
		if !named || seen[text] || slices.Contains(otherMeanings, text) {
			return true
		}
		seen[text] = true
		if len(text) > 80 {
			text = "… " + word + " …"
		}
		found = append(found, fmt.Sprintf("says %q", text))
		return true
	})
	return found
}

// kindIn returns the first word of a text, or of an identifier in camel case, that is
// the name of a kind, in the plural or not, those that mean nothing else before
// ordinaryWords.
func kindIn(text string, names []string) (found string, isKind bool) {
	for _, word := range words(text) {
		word = strings.ToLower(word)
		if !slices.Contains(names, word) {
			word = strings.TrimSuffix(word, "s")
		}
		switch {
		case !slices.Contains(names, word):
		case !slices.Contains(ordinaryWords, word):
			return word, true
		default:
			found, isKind = word, true
		}
	}
	return found, isKind
}

// words splits a text at everything that is no letter, and before capital letters.
func words(text string) []string {
	var separated strings.Builder
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r):
			separated.WriteRune(' ')
		}
		separated.WriteRune(r)
	}
	return strings.Fields(separated.String())
}
