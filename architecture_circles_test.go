package penstock_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mostInACircle is how many struct types of a package may reach each other through their fields.
// Whoever reads one of them has to know all others.
const mostInACircle = 5

// circles are the packages in which there are more, and how many: it may become less, never more.
var circles = map[string]int{
	"adaptive": 6,
}

// Types that hold each other in a circle are understood, tested and changed only all at once.
func TestFewTypesHoldEachOtherInACircle(t *testing.T) {
	packages := make(map[string]map[string]ast.Expr) // folder → type → what it is
	eachFile(t, func(_ *testing.T, file sourceFile) {
		if file.test {
			return
		}
		types := packages[file.pkg]
		if types == nil {
			types = make(map[string]ast.Expr)
			packages[file.pkg] = types
		}
		for _, d := range file.syntax.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				for _, spec := range g.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						types[named.Name.Name] = named.Type
					}
				}
			}
		}
	})
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		circle := largestCircle(packages[pkg])
		if most, listed := circles[pkg]; listed {
			assert.Len(t, circle, most, "%s: if there are less now, say so in circles; these reach each other", pkg)
			continue
		}
		assert.LessOrEqual(t, len(circle), mostInACircle, "%s: these reach each other through their fields: %s", pkg, strings.Join(circle, ", "))
	}
}

// largestCircle returns the names of the struct types of the largest circle, sorted.
func largestCircle(types map[string]ast.Expr) []string {
	reach := make(map[string]map[string]bool)
	for name := range types {
		reach[name] = make(map[string]bool)
		holds(types, name, reach[name])
	}
	var largest []string
	for name := range types {
		var circle []string
		for other := range reach[name] {
			if _, isStruct := types[other].(*ast.StructType); isStruct && reach[other][name] {
				circle = append(circle, other)
			}
		}
		if slices.Sort(circle); len(circle) > len(largest) || len(circle) == len(largest) && slices.Compare(circle, largest) < 0 {
			largest = circle
		}
	}
	return largest
}

// holds adds the types of the package that values of a type hold, directly or by others.
func holds(types map[string]ast.Expr, name string, held map[string]bool) {
	ast.Inspect(types[name], func(node ast.Node) bool {
		switch of := node.(type) {
		case *ast.FuncType, *ast.InterfaceType:
			return false // holds nothing of these types
		case *ast.SelectorExpr:
			return false // a type of another package
		case *ast.Field:
			holdsOf(types, of.Type, held)
			return false
		case *ast.Ident:
			if _, own := types[of.Name]; own && !held[of.Name] {
				held[of.Name] = true
				holds(types, of.Name, held)
			}
		}
		return true
	})
}

// holdsOf is holds for the type of a field.
func holdsOf(types map[string]ast.Expr, field ast.Expr, held map[string]bool) {
	const name = "" // no type has it
	types[name] = field
	defer delete(types, name)
	holds(types, name, held)
}
