package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

const (
	// matchTime is how long a push waits for calls that show whether the origins, attributes
	// and exceptions of its rules exist. Instances report every five seconds.
	matchTime = 10 * time.Second

	maxWarnings = 10 // about rules
)

// unmatchedRules are the rules that no instance has seen a call for.
type unmatchedRules struct {
	rules  []etcd.UnmatchedRule // by kind and name
	more   int                  // that the instance which leaves out most does not name
	silent []string             // instances that report nothing about it
}

// unmatchedBy returns the rules of which something is missing at every instance that
// reports it, with what the calls of all of them together have not shown. Only documents
// for which include returns true count.
func unmatchedBy(reports []etcd.Report, include func(document string) bool) (u unmatchedRules) {
	found := make(map[string][]etcd.UnmatchedRule)
	var keys []string // in order of occurrence
	telling := 0
	for _, r := range reports {
		if r.Digest == "" {
			u.silent = append(u.silent, r.Instance)
			continue
		}
		telling++
		u.more = max(u.more, r.MoreUnmatched)
		for _, rule := range r.Unmatched {
			if !include(rule.Document) {
				continue
			}
			key := fmt.Sprintf("%s %q %q", rule.Kind, rule.Rule, rule.Document)
			if found[key] == nil {
				keys = append(keys, key)
			}
			found[key] = append(found[key], rule)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if len(found[key]) == telling {
			u.rules = append(u.rules, slices.MaxFunc(found[key], func(a, b etcd.UnmatchedRule) int { return shown(a) - shown(b) }))
			last := &u.rules[len(u.rules)-1]
			last.Attributes = missingEverywhere(last.Attributes, found[key])
			last.Except = slices.DeleteFunc(slices.Clone(last.Except), func(name string) bool {
				return slices.ContainsFunc(found[key], func(r etcd.UnmatchedRule) bool { return !slices.Contains(r.Except, name) })
			})
			if slices.ContainsFunc(found[key], func(r etcd.UnmatchedRule) bool { return r.Related == "" }) {
				last.Related = ""
			}
		}
	}
	u.rules = slices.DeleteFunc(u.rules, func(r etcd.UnmatchedRule) bool {
		isSeen := r.Missing == core.MissingAttribute && len(r.Attributes) == 0 // each is seen by some instance
		return isSeen || r.Missing == core.MissingRelated && r.Related == "" || r.Missing == core.MissingExcept && len(r.Except) == 0
	})
	return u
}

// shown orders what is missing: the later, the more calls have shown.
func shown(r etcd.UnmatchedRule) int {
	return slices.Index([]core.Missing{core.MissingResource, core.MissingRelated, core.MissingCall, core.MissingOrigin, core.MissingAttribute, core.MissingExcept}, r.Missing)
}

// missingEverywhere returns the attributes that no instance has seen which was asked.
func missingEverywhere(attributes []string, at []etcd.UnmatchedRule) []string {
	return slices.DeleteFunc(slices.Clone(attributes), func(key string) bool {
		return slices.ContainsFunc(at, func(r etcd.UnmatchedRule) bool {
			return r.Missing == core.MissingAttribute && !slices.Contains(r.Attributes, key)
		})
	})
}

// isOpen says whether calls may still show that nothing is missing of a rule.
func isOpen(r etcd.UnmatchedRule) bool {
	switch r.Missing {
	case core.MissingResource, core.MissingRelated, core.MissingExcept:
		return false
	case core.MissingCall:
		return len(r.Attributes) > 0 || r.Origin != "" || len(r.Except) > 0
	}
	return true
}

// judged returns the rules that do not match what instances have seen. Of one whose resource
// was called, but not since the rule came into force, that is not known.
func (u unmatchedRules) judged() []etcd.UnmatchedRule {
	return slices.DeleteFunc(slices.Clone(u.rules), func(r etcd.UnmatchedRule) bool { return r.Missing == core.MissingCall })
}

// describeUnmatched says what is missing of a rule.
func describeUnmatched(r etcd.UnmatchedRule) string {
	calls := "of " + r.Resource
	if r.Resource == "" {
		calls = fmt.Sprintf("that matches %q", r.Match)
	}
	what := "no instance has seen a call " + calls
	switch r.Missing {
	case core.MissingCall:
		what += " since it is in force: whether its origin, attributes and exceptions exist is not known yet"
	case core.MissingRelated:
		what = fmt.Sprintf("no instance has seen a call of %s, whose passes it counts", r.Related)
	case core.MissingExcept:
		what = fmt.Sprintf("no instance has seen a call of %s, which it is not for (except)", strings.Join(r.Except, ", "))
	case core.MissingOrigin:
		what += fmt.Sprintf(" by origin %q", r.Origin)
	case core.MissingAttribute:
		what += fmt.Sprintf(" with attribute %s, which it looks at", strings.Join(r.Attributes, ", "))
	}
	return fmt.Sprintf("%s rule %q of %s: %s", r.Kind, r.Rule, r.Document, what)
}

// warnOfUnmatched prints a warning about each of the first rules that match nothing that
// instances have seen, or for which no call has come yet. With strict it returns an error
// if there are any of the former, or if instances do not tell.
func (env Env) warnOfUnmatched(u unmatchedRules, strict bool) error {
	judged := u.judged()
	open := slices.DeleteFunc(slices.Clone(u.rules), func(r etcd.UnmatchedRule) bool {
		return r.Missing != core.MissingCall || !isOpen(r)
	})
	told := slices.Concat(judged, open)
	for _, r := range told[:min(len(told), maxWarnings)] {
		env.warn(describeUnmatched(r))
	}
	if more := max(0, len(told)-maxWarnings); more+u.more > 0 {
		env.warn(fmt.Sprintf("calls may be missing for %s more", wording.Count(more+u.more, "rule")))
	}
	if strict && len(u.silent) > 0 {
		return failure{ExitNo, fmt.Errorf("not known of %s, whose version does not report which rules match: --strict needs that",
			wording.Printable(wording.List(u.silent)))}
	}
	if strict && len(judged)+u.more > 0 {
		return failure{ExitNo, errors.New(wording.Count(len(judged)+u.more, "rule") + " without calls, and --strict is given")}
	}
	return nil
}

// awaitMatches waits, for a while, for calls that show whether the origins and attributes
// exist that the rules of the documents of a push are for. It returns the rules of these of
// which something is missing then.
func (env Env) awaitMatches(ctx context.Context, s *session, found store.Deployment, revision int64, p waitOptions) (unmatchedRules, error) {
	limited, cancel := context.WithTimeout(ctx, min(p.timeout, matchTime))
	defer cancel()
	noted := false
	for {
		u := unmatchedBy(found.Instances, wasWritten(found, revision))
		if limited.Err() != nil || !slices.ContainsFunc(u.rules, isOpen) {
			return u, nil
		}
		if !noted {
			env.note("waiting up to %v for calls with the origins and attributes of the rules", min(p.timeout, matchTime))
			noted = true
		}
		select {
		case <-limited.Done():
		case <-time.After(pollInterval):
		}
		next, err := read(ctx, s, s.store.Deployment)
		if err != nil {
			return unmatchedRules{}, err
		}
		found = next
	}
}

// wasWritten returns a function that says whether a document was written at a revision.
func wasWritten(found store.Deployment, revision int64) func(document string) bool {
	return func(document string) bool {
		return slices.Contains(found.Documents, etcd.DocumentRevision{Name: document, Revision: revision})
	}
}

// anyDocument includes all documents.
func anyDocument(string) bool { return true }
