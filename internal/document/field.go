package document

// Field is what there is to know of a field of a kind without the type of its rules: see rule.Field.
type Field struct {
	Path, About, Default, Missing, Instead string
	Needs                                  []string
}

// FormerField is a field that older documents have and that is never written: another field says now what it
// said. R is the type of the rules.
type FormerField[R any] struct {
	Path string // without a dot
	Now  string // the field that says it now

	// Read sets the field that says it now, after all other fields have been read. The fault may be that the two
	// contradict each other.
	Read func(*R, Value) (fault string)
}

// Former is a [FormerField] without its type parameter.
type Former struct{ Path, Now string }
