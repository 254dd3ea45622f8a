package penstock_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// program is what is known of the functions of tests, and of kits for them, without their types.
type program struct {
	all     []*function
	byName  map[string][]*function // folder and name; methods of all types of a package are one
	enders  map[*function]string   // what ends the goroutine that calls the function
	runners map[*function][]int    // which parameters the function calls on another goroutine
}

// function is one that is declared, with what its file imports of this repository: name → folder.
type function struct {
	declared *ast.FuncDecl
	folder   string
	imports  map[string]string
	isOfTest bool                    // its file ends with _test.go
	locals   map[string]*ast.FuncLit // variables that are functions
	types    map[string]ast.Expr     // of the receiver and the parameters
}

// newProgram returns what is known of the functions of files.
func newProgram(files []sourceFile) *program {
	p := &program{
		byName: make(map[string][]*function), enders: make(map[*function]string), runners: make(map[*function][]int),
	}
	kits := make(map[string]bool) // packages that tests import
	for _, file := range files {
		kits[file.pkg] = kits[file.pkg] || !file.test && slices.Contains(file.imports(), "testing")
	}
	for _, file := range files {
		if !file.test && !kits[file.pkg] {
			continue
		}
		imports := ownNames(file)
		for _, d := range file.syntax.Decls {
			if declared, ok := d.(*ast.FuncDecl); ok && declared.Body != nil {
				f := &function{
					declared: declared, folder: file.pkg, imports: imports, isOfTest: file.test,
					locals: localFunctions(declared), types: declaredTypes(declared),
				}
				p.all = append(p.all, f)
				key := file.pkg + "." + declared.Name.Name
				p.byName[key] = append(p.byName[key], f)
			}
		}
	}
	for again := true; again; {
		again = false
		for _, f := range p.all {
			again = p.learn(f) || again
		}
	}
	return p
}

// callees returns the functions that a call may mean.
func (p *program) callees(f *function, call *ast.CallExpr) []*function {
	fun := call.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		if f.locals[fun.Name] != nil {
			return nil
		}
		return ofKind(p.byName[f.folder+"."+fun.Name], false, len(call.Args))
	case *ast.SelectorExpr:
		if on, ok := fun.X.(*ast.Ident); ok && f.imports[on.Name] != "" {
			return p.imported(f.imports[on.Name], fun.Sel.Name, false, len(call.Args))
		}
		if on, ok := fun.X.(*ast.Ident); ok && f.types[on.Name] != nil {
			return p.methods(f, f.types[on.Name], fun.Sel.Name, len(call.Args))
		}
		callees := ofKind(p.byName[f.folder+"."+fun.Sel.Name], true, len(call.Args))
		for _, folder := range f.imports {
			callees = append(callees, p.imported(folder, fun.Sel.Name, true, len(call.Args))...)
		}
		return callees
	}
	return nil
}

// imported returns functions of another package, whose tests nobody imports.
func (p *program) imported(folder, name string, methods bool, arguments int) []*function {
	all := ofKind(p.byName[folder+"."+name], methods, arguments)
	return slices.DeleteFunc(all, func(f *function) bool { return f.isOfTest })
}

// methods returns the methods of a type that a variable was declared with, or those that it may get from an embedded
// one.
func (p *program) methods(f *function, of ast.Expr, name string, arguments int) (own []*function) {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	folder, typeName := f.folder, ""
	switch of := of.(type) {
	case *ast.Ident:
		typeName = of.Name
	case *ast.SelectorExpr:
		folder, typeName = f.imports[called(&ast.CallExpr{Fun: of.X})], of.Sel.Name
	}
	all := ofKind(p.byName[folder+"."+name], true, arguments)
	for _, method := range all {
		if typeOfReceiver(method.declared) == typeName {
			own = append(own, method)
		}
	}
	if len(own) == 0 {
		return all
	}
	return own
}

// typeOfReceiver returns the name of the type that a method belongs to.
func typeOfReceiver(method *ast.FuncDecl) string {
	of := method.Recv.List[0].Type
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// declaredTypes returns the types of the receiver and the parameters, which nobody shadows.
func declaredTypes(f *ast.FuncDecl) map[string]ast.Expr {
	types := make(map[string]ast.Expr)
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				types[name.Name] = field.Type
			}
		}
	}
	return types
}

// anyNumber of arguments is that of a function that is not called.
const anyNumber = -1

// ofKind returns the methods, or the functions that are none, that can be called with so many arguments.
func ofKind(functions []*function, methods bool, arguments int) (kept []*function) {
	for _, f := range functions {
		has := len(parameters(f.declared))
		if list := f.declared.Type.Params.List; len(list) > 0 {
			if _, variadic := list[len(list)-1].Type.(*ast.Ellipsis); variadic && arguments >= has-1 {
				has = arguments
			}
		}
		if (f.declared.Recv != nil) == methods && (has == arguments || arguments == anyNumber) {
			kept = append(kept, f)
		}
	}
	return kept
}

// called returns the name of what is called, such as t.Fatal.
func called(call *ast.CallExpr) string {
	var name func(ast.Expr) string
	name = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			return name(e.X) + "." + e.Sel.Name
		case *ast.IndexExpr:
			return name(e.X)
		}
		return fmt.Sprintf("%T", e)
	}
	return name(call.Fun)
}

// parameters returns the names of all parameters.
func parameters(f *ast.FuncDecl) (names []string) {
	for _, field := range f.Type.Params.List {
		if len(field.Names) == 0 {
			names = append(names, "_")
		}
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// localFunctions returns the functions that a function gives to variables of its own.
func localFunctions(f *ast.FuncDecl) map[string]*ast.FuncLit {
	locals := make(map[string]*ast.FuncLit)
	ast.Inspect(f.Body, func(node ast.Node) bool {
		if assigned, ok := node.(*ast.AssignStmt); ok && len(assigned.Lhs) == len(assigned.Rhs) {
			for i, value := range assigned.Rhs {
				name, named := assigned.Lhs[i].(*ast.Ident)
				if local, ok := value.(*ast.FuncLit); ok && named {
					locals[name.Name] = local
				}
			}
		}
		return true
	})
	return locals
}

func encloses(outer, inner ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

// ownNames returns the folders of the packages of this repository that a file imports, by their names in it.
func ownNames(file sourceFile) map[string]string {
	folders := make(map[string]string)
	for _, spec := range file.syntax.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		rest, own := strings.CutPrefix(imported, module)
		if !own {
			continue
		}
		name := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if folders[name] = strings.TrimPrefix(rest, "/"); rest == "" {
			folders[name] = "."
		}
	}
	return folders
}
