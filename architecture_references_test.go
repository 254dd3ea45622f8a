package penstock_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mostBackUp is how many of a hundred references between the files of a package may run back up: in the best
// order of the files, in which each refers to those below it. A package whose files have an order is read from
// the top to the bottom, and can be divided at any place. It may become less, never more: the aim is 12.
var mostBackUp = map[string]int{
	"core":                      5,
	"internal/sharing":          10,
	"internal/sharing/ask":      28,
	"internal/sharing/exchange": 16,
	"internal/sharing/lease":    25,
	"flow":                      9,
}

func TestReferencesBetweenFilesRunOneWay(t *testing.T) {
	packages, names := make(map[string][]*ast.File), make(map[*ast.File]string)
	eachFile(t, func(_ *testing.T, file sourceFile) {
		if _, listed := mostBackUp[file.pkg]; listed && !file.test {
			packages[file.pkg] = append(packages[file.pkg], file.syntax)
			names[file.syntax] = filepath.Base(file.path)
		}
	})
	for pkg, most := range mostBackUp {
		refs := referencesOf(positions, packages[pkg], names)
		up, all := refs.backUp(bestOrder(refs)), refs.count()
		t.Logf("%s: %d of %d", pkg, len(up), all)
		assert.Positive(t, all, "%s has no files", pkg)
		assert.LessOrEqual(t, 100*len(up), most*all,
			"%s: %d of %d references between files run back up:\n%s", pkg, len(up), all, strings.Join(up, "\n"))
	}
}

// references are those between the files of a package: from, to.
type references map[string]map[string]bool

// referencesOf returns which file names something that another one declares: types, functions, methods, fields.
// Other packages are not looked at, so what is found by the types of these is left out.
func referencesOf(set *token.FileSet, files []*ast.File, names map[*ast.File]string) references {
	refs, declared := make(references), make(map[types.Object]string)
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}}
	pkg, _ := config.Check(files[0].Name.Name, set, files, info) // the errors are about other packages
	local := func(o types.Object) bool {                         // of a function
		return o.Parent() != nil && o.Parent() != pkg.Scope()
	}
	each := func(use func(file string, id *ast.Ident)) {
		for _, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if id, ok := node.(*ast.Ident); ok {
					use(names[file], id)
				}
				return true
			})
		}
	}
	each(func(file string, id *ast.Ident) {
		if o := info.Defs[id]; o != nil && o.Pkg() == pkg && !local(o) {
			declared[o] = file
		}
	})
	each(func(file string, id *ast.Ident) {
		if refs[file] == nil {
			refs[file] = make(map[string]bool)
		}
		if to := declared[origin(info.Uses[id])]; to != "" && to != file {
			refs[file][to] = true
		}
	})
	return refs
}

// origin returns the field or method of a generic type, for one of an instance.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// noPackages imports packages that have nothing in them.
type noPackages struct{}

func (noPackages) Import(of string) (*types.Package, error) {
	name := path.Base(of)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(of))
	}
	imported := types.NewPackage(of, name)
	imported.MarkComplete()
	return imported, nil
}

func (r references) count() (count int) {
	for _, to := range r {
		count += len(to)
	}
	return count
}

// backUp returns the references that run back up in an order of the files.
func (r references) backUp(order []string) (up []string) {
	for from := range r {
		for to := range r[from] {
			if slices.Index(order, to) < slices.Index(order, from) {
				up = append(up, fmt.Sprintf("\t%s → %s", from, to))
			}
		}
	}
	slices.Sort(up)
	return up
}

// bestOrder returns an order of the files in which few references run back up: first that of how many more
// files a file refers to than refer to it, then each file moves to where the fewest do, until none moves.
func bestOrder(refs references) []string {
	excess := make(map[string]int)
	for from, to := range refs {
		excess[from] += len(to)
		for file := range to {
			excess[file]--
		}
	}
	order := slices.SortedFunc(maps.Keys(refs), func(a, b string) int {
		return cmp.Or(cmp.Compare(excess[b], excess[a]), cmp.Compare(a, b))
	})
	for moves := true; moves; {
		moves = false
		for i := range order {
			if at := bestPlace(refs, order, i); at != i {
				file := order[i]
				order = slices.Insert(slices.Delete(order, i, i+1), at, file)
				moves = true
			}
		}
	}
	return order
}

// bestPlace returns where the file at an index of an order is to be, so that the fewest references run back up:
// where it is unless another place is better.
func bestPlace(refs references, order []string, i int) int {
	file, place, least := order[i], i, 0
	change := 0
	for j := i - 1; j >= 0; j-- {
		change += less(refs[order[j]][file]) - less(refs[file][order[j]])
		if change < least {
			place, least = j, change
		}
	}
	change = 0
	for j := i + 1; j < len(order); j++ {
		change += less(refs[file][order[j]]) - less(refs[order[j]][file])
		if change < least {
			place, least = j, change
		}
	}
	return place
}

// less returns 1 for a reference that would run back up.
func less(refers bool) int {
	if refers {
		return 1
	}
	return 0
}
