package match

import (
	"cmp"
	"slices"
	"strings"
)

// Index finds, among many patterns, those that match a name. It tries only the patterns
// whose literal text is in the name: the text that they begin with, or another one. So the
// cost of a name depends on how many patterns match it, and hardly on how many there are,
// unless many have no literal text, or all the same one.
//
// An Index never changes and is safe for concurrent use. The zero value finds nothing.
type Index struct {
	patterns []Pattern
	prefixes node  // patterns, by what every name that matches begins with
	words    node  // other patterns, by what every name that matches has somewhere
	others   []int // those that have neither
}

// NewIndex returns the index of some patterns, which it identifies by their places in the
// list. It keeps the list, which must not be changed any more.
func NewIndex(patterns []Pattern) *Index {
	x := &Index{patterns: patterns}
	shared := make(map[string]int) // how many patterns have a literal
	for i := range patterns {
		for _, text := range patterns[i].texts() {
			shared[text]++
		}
	}
	for i := range patterns {
		texts := patterns[i].texts()
		if len(texts) == 0 {
			x.others = append(x.others, i)
			continue
		}
		rarest := slices.MinFunc(texts, func(a, b string) int {
			return cmp.Or(cmp.Compare(shared[a], shared[b]), cmp.Compare(len(b), len(a)))
		})
		if rarest == patterns[i].prefix {
			x.prefixes.add(rarest, i)
		} else {
			x.words.add(rarest, i)
		}
	}
	return x
}

// Append appends to places those of the patterns that match the name, in
// ascending order.
func (x *Index) Append(places []int, name string) []int {
	var few [16]*node
	found := x.prefixes.find(few[:0], name)
	if len(x.words.children) > 0 {
		for i := range len(name) {
			found = x.words.find(found, name[i:])
		}
	}
	given := len(places)
	places = x.appendMatching(places, x.others, name)
	for _, n := range found {
		places = x.appendMatching(places, n.places, name)
	}
	slices.Sort(places[given:])
	return places
}

// appendMatching appends those of the candidates that match.
func (x *Index) appendMatching(places, candidates []int, name string) []int {
	for _, place := range candidates {
		if x.patterns[place].Matches(name) {
			places = append(places, place)
		}
	}
	return places
}

// node is a node of a tree of texts, a radix tree. It has the patterns that were added under
// the text on the way to it.
type node struct {
	text     string // from the parent to here
	firsts   []byte // of the children's texts
	children []*node
	places   []int
}

// add adds a pattern under a text.
func (n *node) add(text string, place int) {
	for text != "" {
		i := slices.Index(n.firsts, text[0])
		if i < 0 {
			n.firsts = append(n.firsts, text[0])
			n.children = append(n.children, &node{text: text})
			i = len(n.children) - 1
		}
		child := n.children[i]
		if common := commonPrefix(child.text, text); common < len(child.text) {
			child = child.split(common)
			n.children[i] = child
		}
		text, n = text[len(child.text):], child
	}
	n.places = append(n.places, place)
}

// split splits the text of a node in two and returns the node of the first part.
func (n *node) split(at int) *node {
	parent := &node{text: n.text[:at], firsts: []byte{n.text[at]}, children: []*node{n}}
	n.text = n.text[at:]
	return parent
}

// find appends the nodes with patterns whose texts the name begins with, except those
// that were found before.
func (n *node) find(found []*node, name string) []*node {
	for name != "" {
		i := slices.Index(n.firsts, name[0])
		if i < 0 {
			break
		}
		n = n.children[i]
		rest, ok := strings.CutPrefix(name, n.text)
		if !ok {
			break
		}
		name = rest
		if len(n.places) > 0 && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	return found
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
