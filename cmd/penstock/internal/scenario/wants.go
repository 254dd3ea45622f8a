package scenario

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// wants is what the numbers of a sequence are expected to be. It is written as
// words, one a number:
//
//	333 348..360 _ 1000±5 1000x3 0… ±2
//
// After a number, ± is its tolerance, x repeats it and … repeats it to the end. A
// tolerance of its own is for all plain numbers.
type wants struct {
	list []want
	hold bool // the last one holds to the end
}

// maxWants bounds what is made of "0x1000".
const maxWants = 100_000

var wantWord = regexp.MustCompile(`^(.*?)(?:(?:±|\+-)([^x…]+?))?(?:x([0-9]+))?(…|\.\.\.)?$`)

// wants reads a sequence, be it a list of YAML or one text.
func (r *reader) wants(n *yaml.Node, field string, u unit) wants {
	p := wantsParser{reader: r, field: field, unit: u}
	before := len(r.problems)
	for _, item := range items(n) {
		if !isScalar(item) {
			r.fail(placeOf(item), field, "is %s: must be numbers, such as %s", describe(item), u.such)
			continue
		}
		for _, w := range r.words(item) {
			p.word(w)
		}
	}
	if len(p.list) == 0 && len(r.problems) == before {
		r.fail(placeOf(n), field, "is empty: must be numbers, such as %s, or a range, such as %[1]s.. for %[1]s and more", u.such)
	}
	if p.tolerance != "" {
		for i, w := range p.list {
			if w.exact {
				p.list[i], _ = w.within(p.tolerance, u)
			}
		}
	}
	return p.wants
}

// want reads one number.
func (r *reader) want(n *yaml.Node, field string, u unit) want {
	before := len(r.problems)
	w := r.wants(n, field, u)
	if len(r.problems) == before && (len(w.list) != 1 || w.hold) {
		r.fail(placeOf(n), field, "is a sequence: must be one number, such as %s, or a range", u.such)
	}
	if len(w.list) == 0 {
		return want{}
	}
	return w.list[0]
}

// wantsParser gathers the numbers of a sequence, word by word.
type wantsParser struct {
	*reader
	field string
	unit  unit

	wants
	tolerance string // for those that have none
}

func (p *wantsParser) word(w word) {
	parts := wantWord.FindStringSubmatch(strings.TrimSuffix(w.text, ","))
	if parts == nil { // a line break, escaped
		p.fail(w.at, p.field, "has %s: must be numbers, such as %s", wording.Quote(w.text), p.unit.such)
		return
	}
	body, tolerance, count, hold := parts[1], parts[2], parts[3], parts[4] != ""
	switch {
	case p.hold && (body != "" || count != "" || hold):
		p.fail(w.at, p.field, "has %s behind the …, which holds to the end: remove one of them", wording.Quote(w.text))
	case body != "":
		p.number(w, body, tolerance)
	case tolerance != "":
		p.tolerate(w, tolerance)
	}
	if count != "" {
		p.repeat(w, count)
	}
	if hold && len(p.list) == 0 {
		p.fail(w.at, p.field, "has nothing before the …: write the number that it holds to the end")
	}
	p.hold = p.hold || hold
}

func (p *wantsParser) number(w word, body, tolerance string) {
	v, ok := parseWant(body, p.unit)
	if ok && tolerance != "" {
		ok = v.exact
		if ok {
			v, ok = v.within(tolerance, p.unit)
		}
	}
	if !ok {
		such := p.unit.such
		p.fail(w.at, p.field, "has %s: must be a number, such as %s, with a tolerance, as %s±5%%, a range, as %s.., or _ for any",
			wording.Quote(w.text), such, such, such)
	}
	p.list = append(p.list, v)
}

// tolerate sets the tolerance of the whole sequence.
func (p *wantsParser) tolerate(w word, tolerance string) {
	switch _, ok := (want{}).within(tolerance, p.unit); {
	case !ok:
		p.fail(w.at, p.field, "has %s: must be a tolerance, such as ±%s or ±5%%", wording.Quote(w.text), p.unit.such)
	case p.tolerance != "":
		p.fail(w.at, p.field, "has a second tolerance: remove one")
	default:
		p.tolerance = tolerance
	}
}

// repeat repeats the last number, so that there are so many of it.
func (p *wantsParser) repeat(w word, digits string) {
	count, err := strconv.Atoi(digits)
	if err != nil || len(p.list) == 0 || count < 1 || count > maxWants-len(p.list) {
		p.fail(w.at, p.field, "has %s: write x and how many times behind a number; at most %d numbers in all", wording.Quote(w.text), maxWants)
		return
	}
	p.list = append(p.list, slices.Repeat(p.list[len(p.list)-1:], count-1)...)
}

// at returns what the number at the index is expected to be, anything when the
// sequence is too short.
func (w wants) at(i int) want {
	switch {
	case i < len(w.list):
		return w.list[i]
	case w.hold:
		return w.list[len(w.list)-1]
	default:
		return want{any: true}
	}
}
