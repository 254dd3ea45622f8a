package penstock_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mostExported is how many names the packages of the root module export that programs can import: types,
// functions, methods, constants and variables. It may become less, never more. Who
// needs another one shows that users do, or makes one of the others internal.
const mostExported = 997

func TestPackagesExportNoMoreThanTheyDid(t *testing.T) {
	nested := nestedModules(t)
	exported := make(map[string]int) // package → names
	eachFile(t, func(_ *testing.T, file sourceFile) {
		isIn := func(module string) bool { return strings.HasPrefix(file.pkg+"/", module+"/") }
		isInternal := strings.Contains("/"+file.pkg+"/", "/internal/")
		if file.test || isInternal || file.syntax.Name.Name == "main" || slices.ContainsFunc(nested, isIn) {
			return
		}
		for _, d := range file.syntax.Decls {
			exported[file.pkg] += exportedBy(d)
		}
	})
	total := 0
	var list strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(exported)) {
		total += exported[pkg]
		fmt.Fprintf(&list, "%s: %d\n", pkg, exported[pkg])
	}
	assert.LessOrEqual(t, total, mostExported, "more than before; by package:\n%s", &list)
}

// exportedBy returns how many names a declaration exports.
func exportedBy(d ast.Decl) (count int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverOf(d.Recv.List[0].Type))) {
			count++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch of := spec.(type) {
			case *ast.TypeSpec:
				if of.Name.IsExported() {
					count++
				}
			case *ast.ValueSpec:
				for _, name := range of.Names {
					if name.IsExported() {
						count++
					}
				}
			}
		}
	}
	return count
}

// receiverOf returns the name of the type of a method's receiver.
func receiverOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiverOf(of.X)
	case *ast.IndexExpr:
		return receiverOf(of.X)
	case *ast.IndexListExpr:
		return receiverOf(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
