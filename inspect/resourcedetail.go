package inspect

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// resourcesPath is the part of a path before the name of a resource.
const resourcesPath = "resources"

// ResourceDetail is all that an engine knows of one resource.
type ResourceDetail struct {
	Time time.Time `json:"time"`

	// Resource has its Seconds, and in Rules all rules that guard the resource, for whichever callers,
	// in the order in which they are asked.
	Resource

	// Limiters are the same rules as documents write them, where they stand, and their states. A rule
	// that several resources share has one state for all.
	Limiters []Rule `json:"limiters"`
}

// ResourcePath returns the path below that of [Handler] that shows the resource of a name.
func ResourcePath(name string) string {
	escaped := url.PathEscape(name)
	if strings.Trim(name, ".") == "" { // "." and ".." mean something in paths
		escaped = strings.ReplaceAll(name, ".", "%2E")
	}
	return resourcesPath + "/" + escaped
}

// nameIn returns the name of the resource that a path asks for: its last part, if the one before is
// "resources". A slash in the name is %2F.
func nameIn(of *url.URL) (name string, ok bool) {
	parts := strings.Split(of.EscapedPath(), "/")
	if len(parts) < 2 || parts[len(parts)-2] != resourcesPath || parts[len(parts)-1] == "" {
		return "", false
	}
	name, err := url.PathUnescape(parts[len(parts)-1])
	return name, err == nil
}

// resource answers with all of one resource.
func (h handler) resource(w http.ResponseWriter, r *http.Request, name string) {
	if r.URL.RawQuery != "" {
		answer(w, http.StatusBadRequest, Failure{"inspect: a resource by its name has no parameters"})
		return
	}
	view, ok := h.engine.View(name)
	if !ok {
		answer(w, http.StatusNotFound, Failure{"inspect: no resource " + rule.Quote(name) +
			" was called in the last minute, and no rule names it: a slash in a name is written %2F in the path"})
		return
	}
	detail := ResourceDetail{Time: timeOf(h.engine.Clock(), view.At), Limiters: []Rule{}}
	detail.Resource = h.resourceOf(view, true)
	detail.Rules, detail.MoreRules = nil, 0
	for _, of := range view.Rules() {
		detail.Rules = append(detail.Rules, resourceRuleOf(&of, true))
	}
	for _, applied := range view.Applied() {
		detail.Limiters = append(detail.Limiters, appliedRule(h.engine.Clock(), &applied))
	}
	answer(w, http.StatusOK, detail)
}

// appliedRule returns a rule in force with its place and its state.
func appliedRule(c clock.Clock, applied *core.Applied) Rule {
	of := RuleOf(applied.Rule)
	of.Off = applied.Off
	of.Source, of.Document, of.Line, of.Column = applied.Source, applied.Document, applied.Line, applied.Column
	of.Attributes, of.State = attributesOf(applied.Attributes), stateOf(c, applied)
	of.PartitionKey = base64.StdEncoding.EncodeToString(applied.PartitionKey())
	return of
}
