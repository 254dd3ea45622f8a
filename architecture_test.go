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
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/penstock-go/penstock"

// layers gives each package its layer, with all packages below it that are not listed
// themselves. A package imports only packages of lower layers, and its own internal
// packages. Folders of the root module that are not listed are kinds of rules.
var layers = map[string]int{
	"clock":               0,
	"internal/calendar":   0, // days, weeks and months of a time zone
	"internal/document":   0, // values of rule documents
	"internal/match":      0, // patterns of names: globs and regular expressions
	"stat":                1,
	"list":                1, // addresses and texts to look up
	"recording":           1, // recorded calls, and their files
	"fleet":               1, // limits of a whole fleet: what programs and stores of a fleet need
	"internal/sharing":    1, // limits of a whole fleet: what an instance decides by itself
	"internal":            1, // parts that several kinds of rules have in common
	"rule":                2, // the contract between the engine and a kind of rule
	"internal/fairqueue":  0, // waiting calls of several tenants
	"internal/longtest":   0, // how much tests do
	"internal/leap":       2, // what is counted of a resource, and by a window that enforces a limit
	"internal/versions":   0, // which version of a rule uses what all share
	"internal/warnonce":   0, // what was warned of already
	"internal/prepaid":    2, // balances that are only recharged
	"internal/valuehash":  2, // hashes of the values of attributes
	"internal/tenants":    2, // whose calls wait, of rules that share fairly between tenants
	"internal/pending":    2, // calls that wait for a rule
	"internal/standalone": 2, // what limiters of several kinds need without an engine
	"internal/optional":   2, // what the engine asks limiters for beyond the contract for all kinds
	"internal/settings":   2, // fields that rules of several kinds have
	"rules":               4,
	"core":                5,
	".":                   5, // the root package, the thin facade of core
	"datasource":          6,
	"adapters":            6,
	"metrics":             6,
	"signal":              6, // how busy the process, its container and its machine are
	"simulate":            6,
	"inspect":             6,
	"serve":               6, // decisions for proxies, over their protocols
	"console":             6, // a page for operators, of one process or of all instances
	"examples":            7,
	"soak":                7,
	"bench":               7,
	"tools":               7,

	// What the instances of a fleet share, in servers.
	"fleet/redis": 6,
	"fleet/etcd":  6,

	// What the readers of signals have in common.
	"signal/internal/procfs": 1,
	"signal/internal/share":  1,

	// What sources do about failures, what those that read an API over HTTP have in common, and
	// what copies of rules and of lists do.
	"datasource/retry":             1,
	"datasource/internal/remote":   1,
	"datasource/internal/copyfile": 1,

	// Programs that consist of several packages have layers of their own.
	"bench/cmd":                     8,
	"internal/overload":             7, // what soak/overload and bench/internal/libraries run
	"soak/overload":                 8,
	"bench/internal/libraries":      8,
	"cmd/penstock/internal/files":   7,
	"cmd/penstock/internal/wording": 7,
	"cmd/penstock/internal":         8,
	"cmd/penstock/internal/command": 9,
	"cmd/penstock/cli":              10,
	"cmd/penstock":                  11,
	"examples/quota/quota":          6,
	"rule/kindtest":                 6,  // the conformance suite of kinds
	"examples/quota/penstock":       11, // a command line of its own
}

// kinds is the layer of the kinds of rules, which have a folder each.
const kinds = 3

// sameLayer lists the imports within a layer that are intended.
var sameLayer = map[string][]string{
	".": {"core", "signal"}, // the default engine reads the signals of the system
	// The adapters have in common how they find clients and bound what those choose.
	"adapters/nethttp": {"adapters/clientip", "adapters/attribute", "adapters/priority", "adapters/outgoing"},
	"adapters/gin":     {"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority"},
	"adapters/grpc": {
		"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority", "adapters/outgoing", "adapters/rpc",
	},
	"adapters/connect": {
		"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority", "adapters/outgoing", "adapters/rpc",
	},
	"adapters/kratos": {
		"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority", "adapters/outgoing", "adapters/rpc",
	},
	"adapters/llm":      {"adapters/outgoing"},
	"adapters/redis":    {"adapters/attribute", "adapters/outgoing"},
	"adapters/sql":      {"adapters/attribute", "adapters/outgoing"},
	"adapters/fiber":    {"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority"},
	"adapters/chi":      {"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority"},
	"adapters/echo":     {"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority"},
	"adapters/clientip": {"adapters/priority"},

	"adapters/adaptertest": {"adapters/nethttp", "adapters/clientip", "adapters/priority", "adapters/outgoing", "adapters/rpc"},
	"adapters/sql/sqltest": {"adapters/sql"},

	"metrics/prometheus": {"adapters/outgoing"},

	"internal/standalone": {"rule"},
	"internal/optional":   {"rule"},
	"internal/settings":   {"rule"},
	"internal/pending":    {"rule"},
	"internal/prepaid":    {"rule"},
	"internal/valuehash":  {"rule"},
	"internal/tenants":    {"rule", "internal/settings", "internal/valuehash"},

	"serve": {"adapters/nethttp", "adapters/clientip", "adapters/attribute", "adapters/priority"},

	"core/internal/call":    {"core/internal/each", "core/internal/recorder"},
	"core/internal/events":  {"core/internal/lines"},
	"core/internal/inforce": {"core/internal/call", "core/internal/each", "core/internal/names"},
	"core/internal/journal": {"core/internal/lines", "core/internal/ruleset"},
	"core/internal/registry": {
		"core/internal/call", "core/internal/counts", "core/internal/each", "core/internal/inforce", "core/internal/load",
		"core/internal/names", "core/internal/recorder",
	},
	"core/internal/sources": {"core/internal/journal", "core/internal/ruleset", "core/internal/sleep"},

	"console": {"inspect", "simulate", "datasource/etcd", "datasource/etcd/store"},

	"fleet":        {"fleet/places", "internal/places"},
	"fleet/memory": {"fleet", "internal/places"},

	// An instance of a fleet, from the pure parts up.
	"internal/sharing": {
		"fleet", "internal/sharing/usage", "internal/sharing/exchange",
		"internal/sharing/lease", "internal/sharing/ask", "internal/sharing/share",
		"internal/sharing/leasedplaces", "internal/sharing/valueplaces",
	},
	// The ways to share a limit, which do not know each other.
	"internal/sharing/lease": {
		"fleet", "internal/sharing/exchange", "internal/sharing/outage", "internal/sharing/usage",
		"internal/sharing/packed", "internal/sharing/unordered",
	},
	"internal/sharing/ask": {
		"fleet", "internal/sharing/exchange", "internal/sharing/outage", "internal/sharing/usage",
		"internal/sharing/packed", "internal/sharing/unordered",
	},
	"internal/sharing/share":        {"fleet", "internal/sharing/exchange"},
	"internal/sharing/leasedplaces": {"fleet", "internal/places", "internal/sharing/exchange", "internal/sharing/unordered"},
	"internal/sharing/valueplaces":  {"fleet", "internal/places", "fleet/places", "internal/sharing/exchange", "internal/sharing/unordered"},
	"internal/sharing/exchange":     {"fleet", "internal/places"},
	"internal/sharing/outage":       {"fleet", "internal/sharing/usage"},
	"internal/sharing/usage":        {"fleet"},

	"internal/places": {"fleet/places"},

	"datasource/etcd":       {"datasource/lists", "datasource/snapshot"},
	"datasource/etcd/store": {"datasource/etcd", "datasource/etcd/internal/listformat"},
	"datasource/file":       {"datasource/lists"},
	"datasource/redis":      {"datasource/snapshot"},
	"datasource/consul":     {"datasource/snapshot"},
	"datasource/nacos":      {"datasource/snapshot"},
	"datasource/http":       {"datasource/lists"},

	"fleet/etcd":               {"datasource/etcd"}, // where the keys of an application are
	"datasource/etcd/etcdtest": {"datasource/etcd", "fleet/etcd"},
}

// thirdParties lists what packages of the root module import beside the standard
// library. Nested modules list theirs in go.mod.
var thirdParties = map[string][]string{
	"rules":             {"go.yaml.in/yaml/v4"},
	"internal/overload": {"go.yaml.in/yaml/v4"}, // scenes are files
}

// testParties is what tests of the root module may import. The parser of YAML is one that package
// rules needs anyway.
var testParties = []string{"github.com/stretchr/testify/", "pgregory.net/rapid", "go.uber.org/goleak", "go.yaml.in/yaml/v4"}

// globals are the package-level variables that are neither error values to compare with
// nor constant patterns.
var globals = []string{
	"penstock.defaultEngine", // made on first use; the one exception
	"rule.kinds",             // never written; only its addresses count
	"redis.sources",          // never written; the embedded scripts
	"overload.sceneFiles",    // never written; the embedded scenes
	"console.files",          // never written; the embedded files of the page
	"peer.coarseClock",       // made on first use; one for all that a process measures
}

func TestPackagesImportOnlyLowerLayers(t *testing.T) {
	eachFile(t, func(t *testing.T, file sourceFile) {
		if file.test && file.pkg == "." {
			return // they prove what the packages do together
		}
		for _, imported := range file.ownImports() {
			if imported == file.pkg || isInternalOf(imported, file.pkg) || slices.Contains(sameLayer[file.pkg], imported) {
				continue
			}
			from, to := layerOf(file.pkg), layerOf(imported)
			if file.test && from != kinds {
				assert.LessOrEqual(t, to, from, "%s must not import %s, which is in a higher layer", file.path, imported)
			} else {
				assert.Less(t, to, from, "%s must not import %s, which is not in a lower layer; packages that are not in the table are kinds of rules", file.path, imported)
			}
		}
	})
}

func TestKindsOfRulesDoNotImportEachOther(t *testing.T) {
	eachFile(t, func(t *testing.T, file sourceFile) {
		if layerOf(file.pkg) != kinds {
			return
		}
		for _, imported := range file.ownImports() {
			assert.False(t, layerOf(imported) == kinds && kindFolder(imported) != kindFolder(file.pkg),
				"%s must not import %s: kinds of rules do not know each other", file.path, imported)
		}
	})
}

func TestRootModuleHasNoDependencies(t *testing.T) {
	modules := nestedModules(t)
	eachFile(t, func(t *testing.T, file sourceFile) {
		if within(modules, file.pkg) {
			return
		}
		for _, imported := range file.ownImports() {
			assert.False(t, within(modules, imported), "%s must not import %s, which is another module", file.path, imported)
		}
		for _, imported := range file.imports() {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, module) {
				continue // the standard library, or ours
			}
			allowed := thirdParties[file.pkg]
			if file.test {
				allowed = append(slices.Clone(allowed), testParties...)
			}
			assert.True(t, slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(imported, p) }),
				"%s must not import %s: a framework has a module of its own", file.path, imported)
		}
	})
}

// A program that only guards its calls has no HTTP server, nor the 75 packages that net/http needs.
func TestEngineAndKindsDoNotImportHTTP(t *testing.T) {
	eachFile(t, func(t *testing.T, file sourceFile) {
		if !file.test && layerOf(file.pkg) <= layers["core"] && !strings.HasPrefix(file.pkg, "datasource/") {
			assert.NotContains(t, file.imports(), "net/http", file.path)
		}
	})
}

// Modules that are published may be built with another version of the root module. The benchmarks
// are always built with that beside them.
func TestNestedModulesDoNotImportInternals(t *testing.T) {
	modules := nestedModules(t)
	eachFile(t, func(t *testing.T, file sourceFile) {
		for _, folder := range modules {
			if !within([]string{folder}, file.pkg) {
				continue
			}
			for _, imported := range file.ownImports() {
				shared := folder == "bench" && imported == "internal/overload"
				assert.False(t, isInternal(imported) && !shared && !within([]string{folder}, imported),
					"%s must not import %s of another module", file.path, imported)
			}
		}
	})
}

func TestPackagesHaveNoInitAndNoGlobalState(t *testing.T) {
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
					assert.True(t, name == "_" || isErrorValue(name) || slices.Contains(globals, qualified),
						"%s: %s is package-level state", file.path, qualified)
				}
			}
		}
	})
}

func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, func(_ *testing.T, file sourceFile) {
		if !file.test {
			documented[file.pkg] = documented[file.pkg] || file.syntax.Doc != nil
		}
	})
	require.NotEmpty(t, documented)
	for pkg, yes := range documented {
		assert.True(t, yes, "package %s has no package comment", pkg)
	}
}

// sourceFile is one Go file of the repository.
type sourceFile struct {
	path   string
	pkg    string // its folder, "." for the root
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

// ownImports returns the folders of the packages of this repository that the file
// imports.
func (f sourceFile) ownImports() (folders []string) {
	for _, imported := range f.imports() {
		if rest, own := strings.CutPrefix(imported, module); own {
			folders = append(folders, path.Clean(strings.TrimPrefix(rest, "/")))
		}
	}
	return folders
}

// eachFile calls check for every Go file of every module.
func eachFile(t *testing.T, check func(t *testing.T, file sourceFile)) {
	t.Helper()
	if testing.Short() {
		t.Skip("reads every file")
	}
	files, err := sourceFiles()
	require.NoError(t, err)
	for _, file := range files {
		check(t, file)
	}
	require.Greater(t, len(files), 50, "the repository was not found")
}

// positions has the lines of all files that sourceFiles has read.
var positions = token.NewFileSet()

// sourceFiles returns every Go file of every module. It reads them once.
var sourceFiles = sync.OnceValues(func() (files []sourceFile, err error) {
	err = walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(positions, name, nil, parser.ParseComments)
		pkg := filepath.ToSlash(filepath.Dir(name))
		files = append(files, sourceFile{path: name, pkg: pkg, test: strings.HasSuffix(name, "_test.go"), syntax: syntax})
		return err
	})
	return files, err
})

// nestedModules returns the folders that are modules of their own.
func nestedModules(t *testing.T) (folders []string) {
	t.Helper()
	require.NoError(t, walk(func(name string) error {
		if dir := filepath.ToSlash(filepath.Dir(name)); filepath.Base(name) == "go.mod" && dir != "." {
			folders = append(folders, dir)
		}
		return nil
	}))
	require.NotEmpty(t, folders)
	return folders
}

// walk visits every file that is neither hidden nor the data of a test.
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		hidden := len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.IsDir():
			return visit(name)
		}
		return nil
	})
}

// layerOf returns the layer of a package: its own, or that of the nearest folder above.
func layerOf(pkg string) int {
	if pkg == "." {
		return layers["."]
	}
	for at := pkg; at != "."; at = path.Dir(at) {
		if layer, ok := layers[at]; ok {
			return layer
		}
	}
	return kinds
}

// kindFolder returns the folder of a kind of rule that a package is part of.
func kindFolder(pkg string) string {
	folder, _, _ := strings.Cut(pkg, "/")
	return folder
}

func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }

// isInternalOf says whether a package is one of the internal packages of another.
func isInternalOf(pkg, of string) bool { return strings.HasPrefix(pkg, of+"/internal/") }

func within(folders []string, pkg string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// variables returns the package-level variables that a declaration makes, but for
// compiled regular expressions.
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

// isErrorValue says whether a variable has the name of an error that callers compare
// with.
func isErrorValue(name string) bool {
	return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}
