package rule

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/internal/match"
)

const (
	// OtherOrigins is the [Target.Origin] of a rule for the callers that no other rule
	// on the resource names.
	OtherOrigins = "other"

	// OtherResources is the name under which an engine keeps the statistics of the
	// resources beyond its bound. No rule can have it as its Resource or as Related.
	OtherResources = "(other)"

	// MaxNameLength is how many bytes the name of a rule or a resource may have.
	MaxNameLength = 1024

	// maxExcept is how many entries a [Target.Except] may have.
	maxExcept = 100
)

// Target is the name of a rule and which calls it is for.
type Target struct {
	// Name is unique within the kind. It defaults to Resource or Match.
	Name string

	// A rule has either a Resource, which is an exact name, or a Match, which is a
	// pattern of names: a glob, or "~" and a regular expression; "*" matches every resource.
	Resource, Match string

	// Except are names of resources, or patterns of names, that the rule is not for though they
	// match. Only with a Match.
	Except Strings

	// Shared makes all resources that match have one limiter together.
	Shared bool

	// Origin restricts the rule to calls of that caller, [OtherOrigins] to those of
	// callers that no rule on the resource names.
	Origin string

	// Shadow makes the rule decide and count, but let every call through.
	Shadow bool

	// Related makes the rule count the passes of that resource instead of those of
	// the guarded one.
	Related string
}

// Covers says whether the target is for the calls of a resource, whoever makes them: by its name, or
// by a pattern that matches. Excepts says that the pattern matches, but the resource is one of the
// exceptions. The target must be valid.
func (t Target) Covers(resource string) (covers, excepts bool) {
	if t.Match == "" {
		return t.Resource == resource, false
	}
	matches := func(pattern string) bool {
		p, err := match.Compile(pattern)
		return err == nil && p.Matches(resource)
	}
	if !matches(t.Match) {
		return false, false
	}
	for item := range t.Except.All() {
		excepts = excepts || matches(item)
	}
	return !excepts, excepts
}

// Common are the fields that rules of every kind have, as pointers into a rule.
type Common struct {
	Name, Resource, Match *string
	Except                *Strings // nil for kinds whose rules have no exceptions
	Shared                *bool
	Origin                *string
	Shadow                *bool
	Related               *string // nil for kinds that cannot count what passes elsewhere
}

func (c *Common) target() Target {
	t := Target{
		Name: *c.Name, Resource: *c.Resource, Match: *c.Match, Shared: *c.Shared, Origin: *c.Origin, Shadow: *c.Shadow,
	}
	if c.Related != nil {
		t.Related = *c.Related
	}
	if c.Except != nil {
		t.Except = *c.Except
	}
	return t
}

// isPlain says whether the target has a name and a resource, and nothing else.
func (c *Common) isPlain() bool {
	return *c.Match == "" && !*c.Shared && *c.Origin == "" && !*c.Shadow &&
		(c.Related == nil || *c.Related == "") && (c.Except == nil || *c.Except == Strings{})
}

// isVisible says whether the texts have only characters of ASCII that can be seen, and there are no exceptions.
func (c *Common) isVisible() bool {
	for _, text := range [...]*string{c.Name, c.Resource, c.Match, c.Origin} {
		if len(*text) > MaxNameLength || !isVisible(*text) {
			return false
		}
	}
	return c.Except == nil || *c.Except == Strings{}
}

// setName fills in the name of a rule that leaves it out: the resource or the pattern.
func (c Common) setName() {
	if *c.Name == "" {
		*c.Name = c.fullName()
	}
}

func (c Common) fullName() string { return cmp.Or(*c.Name, *c.Resource, *c.Match) }

// validate judges which calls the rule is for.
func (t *Target) validate(f *Faults) {
	if t.Match == "" {
		if t.Resource == "" {
			f.Add("resource", "is missing: name the resource that the rule guards, or write a pattern in match")
		}
		if t.Resource == OtherResources {
			f.Add("resource", reservedName, OtherResources)
		}
		if t.Shared {
			f.Add("perResource", "has no effect without match: remove it")
		}
		if t.Except != (Strings{}) {
			f.Add("except", "has no effect without match: remove it")
		}
		return
	}
	if t.Resource != "" {
		f.Add("match", "stands beside resource %q: a rule has one or the other; remove one", t.Resource)
	}
	_, err := match.Compile(t.Match)
	if mistake := (*match.Error)(nil); errors.As(err, &mistake) {
		f.Add("match", "is %s", mistake.Fault())
	}
	t.validateExcept(f)
}

// validateExcept judges the exceptions of a rule with a pattern.
func (t *Target) validateExcept(f *Faults) {
	if n := t.Except.Len(); n > maxExcept {
		f.Add("except", "has %d entries: the most is %d; a pattern can stand for many names", n, maxExcept)
		return
	}
	for item := range t.Except.All() {
		_, err := match.Compile(item)
		if mistake := (*match.Error)(nil); errors.As(err, &mistake) {
			f.Add("except", "has an entry that is %s", mistake.Fault())
			return
		}
		if item == t.Match || item == "*" {
			f.Add("except", "has the entry %s, which leaves nothing that the rule is for: remove the rule, or the entry", Quote(item))
			return
		}
	}
}

// reservedName is what is wrong with [OtherResources] as a name.
const reservedName = "is %q, which stands for the resources beyond an engine's bound: choose another name"

// CheckName returns what is wrong with the name of a rule or a resource, "" when it is
// sound. Names are written to logs and metrics.
func CheckName(name string) string {
	if len(name) > MaxNameLength {
		return fmt.Sprintf("is %d bytes long: the most is %d", len(name), MaxNameLength)
	}
	if isVisible(name) {
		return ""
	}
	for _, r := range name {
		switch {
		case r == utf8.RuneError:
			return fmt.Sprintf("is %s: it is not UTF-8 or lost a character on its way; write it anew", Quote(name))
		case document.IsInvisible(r):
			return fmt.Sprintf("is %s: it has a character %U, which cannot be seen; remove it", Quote(name), r)
		}
	}
	return ""
}

// isVisible says whether a name has only characters of ASCII that can be seen, and spaces, as most names have.
func isVisible(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Quote returns text in quotes, cut after 60 characters.
func Quote(text string) string { return document.Quote(text) }

// Nearest returns the known name that a misspelled one seems to mean, "" when none is near: one letter in three
// may differ, or the end be left off.
func Nearest(name string, known []string) string { return document.Nearest(name, known) }
