package penstock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/penstock-go/penstock"

// floors is the house: a room, and every room below it, imports only rooms of
// lower floors. Rooms that are not named here have the floor of the nearest
// folder above them that is.
var floors = map[string]int{
	"clock":      0,
	"internal":   0,
	"match":      0,
	"stat":       1,
	"warmup":     1,
	"rule":       2,
	"flow":       3,
	"isolation":  3,
	"breaker":    3,
	"rules":      4,
	"core":       5,
	".":          5, // the root package, the thin facade of core
	"datasource": 6,
	"adapters":   6,
	"metrics":    6,
	"simulate":   6,
	"inspect":    6,
	"examples":   7,
	"soak":       7,
	"bench":      7,

	// Programs that are made of rooms of their own have further storeys.
	"bench/cmd":                     8,
	"cmd/penstock/internal/files":   7,
	"cmd/penstock/internal/wording": 7,
	"cmd/penstock/internal":         8,
	"cmd/penstock/internal/command": 9,
	"cmd/penstock":                  10,
}

// neighbours are imports within a floor that are meant to be.
var neighbours = map[string][]string{
	".":            {"core"},
	"adapters/gin": {"adapters/nethttp"},

	"datasource/etcd/store": {"datasource/etcd"},
}

// thirdParties are the imports, beside the standard library, of rooms in the
// root module; of others their go.mod tells.
var thirdParties = map[string][]string{
	"rules": {"go.yaml.in/yaml/v4"},
}

var testParties = []string{"github.com/stretchr/testify/", "pgregory.net/rapid", "go.uber.org/goleak"}

// globals are the package-level variables that are no sentinel errors and still
// may be.
var globals = []string{
	"penstock.defaultEngine", // made on first use; the one exception
}

func TestRoomsImportOnlyWhatIsBelowThem(t *testing.T) {
	eachFile(t, func(t *testing.T, file sourceFile) {
		for _, imported := range file.imports() {
			room, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			room = path.Clean(strings.TrimPrefix(room, "/"))
			if room == file.room || file.test && floorOf(t, room) <= floorOf(t, file.room) ||
				slices.Contains(neighbours[file.room], room) {
				continue
			}
			assert.Less(t, floorOf(t, room), floorOf(t, file.room), "%s must not import %s", file.path, room)
		}
	})
}

func TestTheRootModuleHasNoDependencies(t *testing.T) {
	modules := nestedModules(t)
	eachFile(t, func(t *testing.T, file sourceFile) {
		if within(modules, file.room) {
			return
		}
		for _, imported := range file.imports() {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, module) {
				continue // the standard library, or ours
			}
			allowed := thirdParties[file.room]
			if file.test {
				allowed = append(slices.Clone(allowed), testParties...)
			}
			assert.True(t, slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(imported, p) }),
				"%s must not import %s: a framework has a module of its own", file.path, imported)
		}
	})
}

func TestNestedModulesDoNotImportInternals(t *testing.T) {
	modules := nestedModules(t)
	eachFile(t, func(t *testing.T, file sourceFile) {
		if !within(modules, file.room) {
			return
		}
		for _, imported := range file.imports() {
			assert.False(t, strings.HasPrefix(imported, module+"/internal"), "%s imports %s", file.path, imported)
		}
	})
}

func TestNothingRunsOnImportAndNoStateIsGlobal(t *testing.T) {
	eachFile(t, func(t *testing.T, file sourceFile) {
		if file.test {
			return
		}
		for _, declaration := range file.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				assert.False(t, d.Recv == nil && d.Name.Name == "init", "%s has an init function", file.path)
			case *ast.GenDecl:
				for _, name := range variables(d) {
					qualified := file.syntax.Name.Name + "." + name
					assert.True(t, name == "_" || isSentinel(name) || slices.Contains(globals, qualified),
						"%s: %s is package-level state", file.path, qualified)
				}
			}
		}
	})
}

func TestEveryRoomSaysWhatItIsFor(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, func(_ *testing.T, file sourceFile) {
		if !file.test {
			documented[file.room] = documented[file.room] || file.syntax.Doc != nil
		}
	})
	require.NotEmpty(t, documented)
	for room, yes := range documented {
		assert.True(t, yes, "room %s has no package comment", room)
	}
}

// sourceFile is one Go file of the house.
type sourceFile struct {
	path   string
	room   string
	test   bool
	syntax *ast.File
}

func (f sourceFile) imports() (paths []string) {
	for _, spec := range f.syntax.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, imported)
	}
	return paths
}

// eachFile calls check for every Go file of every module.
func eachFile(t *testing.T, check func(t *testing.T, file sourceFile)) {
	t.Helper()
	count := 0
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		room := filepath.ToSlash(filepath.Dir(name))
		check(t, sourceFile{path: name, room: room, test: strings.HasSuffix(name, "_test.go"), syntax: syntax})
		count++
	})
	require.Greater(t, count, 50, "the house was not found")
}

// nestedModules returns the folders that are modules of their own.
func nestedModules(t *testing.T) (folders []string) {
	t.Helper()
	walk(t, func(name string) {
		if dir := filepath.ToSlash(filepath.Dir(name)); filepath.Base(name) == "go.mod" && dir != "." {
			folders = append(folders, dir)
		}
	})
	require.NotEmpty(t, folders)
	return folders
}

func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		hidden := len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.IsDir():
			visit(name)
		}
		return nil
	}))
}

func floorOf(t *testing.T, room string) int {
	t.Helper()
	for at := room; ; at = path.Dir(at) {
		if floor, ok := floors[at]; ok && (at != "." || room == ".") {
			return floor
		}
		if at == "." {
			require.Fail(t, "no floor for room "+room)
		}
	}
}

func within(folders []string, room string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return room == f || strings.HasPrefix(room, f+"/") })
}

func variables(d *ast.GenDecl) (names []string) {
	if d.Tok != token.VAR {
		return nil
	}
	for _, spec := range d.Specs {
		values := spec.(*ast.ValueSpec)
		for i, name := range values.Names {
			if i >= len(values.Values) || !isPattern(values.Values[i]) {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// isPattern says whether a value is a compiled regular expression, which never
// changes.
func isPattern(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	return ok && function.Sel.Name == "MustCompile"
}

// isSentinel says whether a variable is named as errors are that callers compare
// with.
func isSentinel(name string) bool {
	return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}
