package rule

import (
	"fmt"
	"slices"
)

// mustBeSound panics if the kind gives two fields the same name, or an example shows one that there is not.
func (s *Spec[R]) mustBeSound() {
	known := make(map[string]bool)
	for _, f := range s.Fields {
		if known[f.Path] {
			panic(fmt.Sprintf("rule: Define of kind %q: two fields are called %q", s.Kind, f.Path))
		}
		known[f.Path] = true
	}
	for _, e := range s.Examples {
		for _, path := range e.Fields {
			if !known[path] {
				panic(fmt.Sprintf("rule: Define of kind %q: the example %q shows a field %q that the kind does not have", s.Kind, e.About, path))
			}
		}
	}
}

// commonExample returns an example of the fields that every kind has, made of the first one, if the examples of the
// kind do not show them all; else none.
func (s *Spec[R]) commonExample() []Example[R] {
	shown := make(map[string]bool)
	for _, e := range s.Examples {
		for _, path := range e.Fields {
			shown[path] = true
		}
	}
	has := func(path string) bool {
		return slices.ContainsFunc(s.Fields, func(f Field[R]) bool { return f.Path == path })
	}
	lacks := func(path string) bool { return has(path) && !shown[path] }
	before, after := []string{"name", "match", "except", "perResource"}, []string{"origin", "shadow"}
	if len(s.Examples) == 0 || !slices.ContainsFunc(slices.Concat(before, after), lacks) {
		return nil
	}
	e := Example[R]{About: "with the fields that rules of all kinds have", Rule: s.Examples[0].Rule}
	c := s.Common(&e.Rule)
	*c.Name, *c.Resource, *c.Match, *c.Shared, *c.Origin, *c.Shadow = "batch-orders", "", "orders:*", true, "batch", true
	if c.Except != nil {
		*c.Except = StringsOf("orders:health")
	}
	if c.Related != nil {
		*c.Related = ""
	}
	isOther := func(path string) bool { return !has(path) || path == "resource" || path == "related" }
	own := slices.DeleteFunc(slices.Clone(s.Examples[0].Fields), func(path string) bool {
		return isOther(path) || slices.Contains(before, path) || slices.Contains(after, path)
	})
	e.Fields = slices.DeleteFunc(slices.Concat(before, own, after), isOther)
	return []Example[R]{e}
}
