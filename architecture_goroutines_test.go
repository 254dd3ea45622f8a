package penstock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test ends no goroutine but its own with require or t.Fatal. The condition of require.Eventually has another:
// one that ends it is never tried again, whatever comes true later, and the test fails after all the time that it
// has. So conditions may not call helpers either that do so, at any depth. Of other goroutines only what they do
// themselves counts. What is called by an interface or a field is not seen.
func TestOnlyTheGoroutineOfATestEndsIt(t *testing.T) {
	var files []sourceFile
	eachFile(t, func(_ *testing.T, file sourceFile) { files = append(files, file) })
	for _, found := range endedGoroutines(newProgram(files)) {
		assert.Fail(t, "ends a goroutine that is not the test's: use assert, or return an error", found)
	}
}

func TestEndedGoroutinesAreFound(t *testing.T) {
	for body, want := range map[string]string{
		`require.Eventually(t, func() bool { require.NoError(t, err); return true }, 1, 1)`: "require.NoError",
		`require.Eventually(t, func() bool { return s.ask() == 1 }, 1, 1)`:                  "ask, which calls s.t.Fatal",
		`wait(t, func() bool { return s.ask() == 1 })`:                                      "ask, which calls s.t.Fatal",
		`is := func() bool { return s.ask() == 1 }; require.Eventually(t, is, 1, 1)`:        "ask, which calls s.t.Fatal",
		`go func() { require.NoError(t, err) }()`:                                           "require.NoError",
		`all.Go(func() { t.FailNow() })`:                                                    "t.FailNow",
		`time.AfterFunc(1, func() { t.Skip() })`:                                            "t.Skip",

		`require.Eventually(t, func() bool { return assert.NoError(t, err) }, 1, 1)`:                      "",
		`require.EventuallyWithT(t, func(c *assert.CollectT) { require.NoError(c, err); f(c) }, 1, 1)`:    "",
		`require.Eventually(t, func() bool { t.Cleanup(func() { t.Fatal() }); return true }, 1, s.ask())`: "",
		`all.Go(func() { assert.NoError(t, err); log.Fatal() })`:                                          "",
		`wait(t, is(s.ask()))`: "",
	} {
		source := `package p
			func f(t require.TestingT) { require.NoError(t, err) }
			func (s *server) ask() int { s.t.Fatal(); return 1 }
			func wait(t *testing.T, is func() bool) { require.Eventually(t, func() bool { return is() }, 1, 1) }
			func Test(t *testing.T, s *server) { ` + body + ` }`
		syntax, err := parser.ParseFile(positions, "p_test.go", source, 0)
		require.NoError(t, err)
		found := endedGoroutines(newProgram([]sourceFile{{path: "p_test.go", pkg: "p", test: true, syntax: syntax}}))
		if want == "" {
			assert.Empty(t, found, body)
		} else if assert.Len(t, found, 1, body) {
			assert.Contains(t, found[0], want+" there", body)
		}
	}
}

// endedGoroutines tells where tests, and kits for them, end other goroutines than that of a test.
func endedGoroutines(p *program) (found []string) {
	for _, f := range p.all {
		p.eachOther(f, func(call *ast.CallExpr, run ast.Node, isCondition bool) {
			if by := p.ends(f, run, isCondition); by != "" {
				found = append(found, fmt.Sprintf("%s: %s calls %s there", positions.Position(call.Pos()), called(call), by))
			}
		})
	}
	return found
}

// learn notes whether a function ends its goroutine and what it calls on others, and says whether that is news.
func (p *program) learn(f *function) (news bool) {
	if p.enders[f] == "" {
		if by := p.ends(f, f.declared.Body, true); by != "" {
			p.enders[f], news = by, true
		}
	}
	p.eachOther(f, func(_ *ast.CallExpr, run ast.Node, isCondition bool) {
		for i, name := range parameters(f.declared) {
			if isCondition && usesFunction(run, name) && !slices.Contains(p.runners[f], i) {
				p.runners[f], news = append(p.runners[f], i), true
			}
		}
	})
	return news
}

// eachOther calls visit with all that a function has run on other goroutines, and by what call.
func (p *program) eachOther(f *function, visit func(call *ast.CallExpr, run ast.Node, isCondition bool)) {
	ast.Inspect(f.declared.Body, func(node ast.Node) bool {
		if started, ok := node.(*ast.GoStmt); ok {
			visit(started.Call, started.Call, false)
		}
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		arguments, areConditions := p.runs(f, call)
		for _, i := range arguments {
			if i < len(call.Args) {
				visit(call, call.Args[i], areConditions)
			}
		}
		return true
	})
}

// runs returns which arguments of a call are functions that it calls on other goroutines.
func (p *program) runs(f *function, call *ast.CallExpr) (arguments []int, areConditions bool) {
	name := called(call)
	on, function, _ := strings.Cut(name, ".")
	switch {
	case (on == "require" || on == "assert") && (strings.HasPrefix(function, "Eventually") || strings.HasPrefix(function, "Never")):
		return []int{1}, true
	case name == "time.AfterFunc":
		return []int{1}, false
	case strings.HasSuffix(name, ".Go"): // of a wait group
		return []int{0}, false
	}
	for _, callee := range p.callees(f, call) {
		arguments = append(arguments, p.runners[callee]...)
	}
	return arguments, true
}

// ends returns what ends the goroutine on which a function, or a part of it, runs: by itself, or also by what it calls.
func (p *program) ends(f *function, run ast.Node, calls bool) (by string) {
	switch run := run.(type) {
	case *ast.Ident:
		if local := f.locals[run.Name]; local != nil {
			return p.ends(f, local, calls)
		}
		if calls && f.types[run.Name] == nil {
			return p.firstEnder(ofKind(p.byName[f.folder+"."+run.Name], false, anyNumber))
		}
		return ""
	case *ast.CallExpr:
		if _, isFunction := run.Fun.(*ast.FuncLit); !isFunction {
			if local := f.locals[called(run)]; local != nil {
				return p.ends(f, local, calls)
			}
			return "" // it returns what is run
		}
	}
	collected := collectors(run)
	ast.Inspect(run, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			return false
		case *ast.CallExpr:
			if by == "" && !givesTo(node, collected) {
				by = p.endsBy(f, node, calls)
			}
			others, _ := p.runs(f, node)
			return by == "" && !isOfAnother(node) && len(others) == 0
		}
		return by == ""
	})
	return by
}

// endsBy returns what ends the goroutine that makes a call.
func (p *program) endsBy(f *function, call *ast.CallExpr, calls bool) string {
	name := called(call)
	on, method, _ := strings.Cut(name, ".")
	if i := strings.LastIndex(name, "."); i >= 0 {
		on, method = name[:i], name[i+1:]
	}
	if on == "require" || on != "log" && slices.Contains([]string{"Fatal", "Fatalf", "FailNow", "Skip", "Skipf", "SkipNow"}, method) {
		return name
	}
	if local := f.locals[name]; local != nil && !encloses(local, call) {
		if by := p.ends(f, local, calls); by != "" {
			return name + ", which calls " + by
		}
	}
	if !calls {
		return ""
	}
	return p.firstEnder(p.callees(f, call))
}

func (p *program) firstEnder(callees []*function) string {
	for _, callee := range callees {
		if by := p.enders[callee]; by != "" {
			return callee.declared.Name.Name + ", which calls " + by
		}
	}
	return ""
}

// isOfAnother says whether functions in the arguments of a call run in the goroutine of a test: later, or of a
// test below it.
func isOfAnother(call *ast.CallExpr) bool {
	name := called(call)
	return strings.HasSuffix(name, ".Cleanup") || strings.HasSuffix(name, ".Run") || name == "synctest.Test"
}

// collectors returns the parameters that collect what fails in a condition, which is tried again then.
func collectors(run ast.Node) (names []string) {
	if f, ok := run.(*ast.FuncLit); ok {
		for _, field := range f.Type.Params.List {
			if star, ok := field.Type.(*ast.StarExpr); ok {
				if of, ok := star.X.(*ast.SelectorExpr); ok && of.Sel.Name == "CollectT" {
					for _, name := range field.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// givesTo says whether a call is one of a method of a variable, or has it as an argument.
func givesTo(call *ast.CallExpr, variables []string) bool {
	on, _, _ := strings.Cut(called(call), ".")
	return slices.Contains(variables, on) || slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && slices.Contains(variables, name.Name)
	})
}

// usesFunction says whether a variable is run, or called in what is.
func usesFunction(run ast.Node, name string) (uses bool) {
	if variable, ok := run.(*ast.Ident); ok {
		return variable.Name == name
	}
	ast.Inspect(run, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && called(call) == name {
			uses = true
		}
		return !uses
	})
	return uses
}
