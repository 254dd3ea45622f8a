package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// What to do about rules that cannot be served.
const (
	instead               = "guard the call where it is made, with an adapter, or let the proxy do it"
	unservableConcurrency = "rules with concurrency count the calls under way, and the proxy does not say when a call has ended: " + instead
	unservableAge         = "rules count the calls under way, and a proxy that does not say when a call has ended would keep its place: add maxAge, and have " +
		"the proxy end calls by is_negative_hits, or " + instead
	unservableCounts = "rules with counts depend on how calls end, and the proxy does not say that: " + instead
)

// Unservable says why rules of a kind cannot be in force in a server of this package, "" if
// they can. It reads on from the name of the kind.
func Unservable(kind rule.Definition) string {
	switch kind.Reason() {
	case rule.RateLimited, rule.Denied:
		return ""
	case rule.Injected:
		return "rules inject faults, which would delay or fail the decision and not the call: let the proxy inject them"
	case rule.Overloaded:
		return "rules count the calls under way, and the proxy does not say when a call has ended: " + instead
	}
	return "rules judge how calls end, and the proxy does not say that: " + instead
}

// Check returns the rules of a set that cannot be in force in a server that has a [RLS] or a [Hold], as
// [rules.Problems] with their places; nil if there are none. Those that count the calls under way can,
// if they have a maxAge: by these, proxies and programs can say when calls have ended. custom are kinds that the set has
// beside those that come with Penstock.
func Check(set rules.Set, custom ...rule.Definition) error {
	return check(set, func(r rule.Rule) string { return cannot(r, unservableRule(r)) }, custom)
}

// CheckQuotas returns the rules of a set that set no quota of a [RLQS], as [Check] does: they are
// no rate that a data plane could keep by itself. A server that has other services may have them
// in force.
func CheckQuotas(set rules.Set, custom ...rule.Definition) error {
	return check(set, func(r rule.Rule) string { return cannot(r, unservableQuota(r)) }, custom)
}

// cannot is what is said of a rule that cannot be served; "" if there is no reason.
func cannot(r rule.Rule, why string) string {
	if why == "" {
		return ""
	}
	return "cannot be served: " + string(r.Key().Kind) + " " + why
}

// CheckHTTP is [Check] for a server that has neither: calls have no end there.
func CheckHTTP(set rules.Set, custom ...rule.Definition) error {
	return check(set, func(r rule.Rule) string { return cannot(r, unservableWithoutEnd(r)) }, custom)
}

// unservableRule is [Unservable] of a rule where proxies can say when calls have ended.
func unservableRule(r rule.Rule) string {
	switch of := r.Value().(type) {
	case hotparam.Rule:
		if of.Concurrency != 0 && of.MaxAge == 0 {
			return unservableAge
		}
	case isolation.Rule:
		if of.MaxAge == 0 {
			return unservableAge
		}
		return ""
	}
	if r.Counts() != "" {
		return unservableCounts
	}
	return Unservable(r.Type())
}

// unservableWithoutEnd is [Unservable] of a rule where proxies cannot say that.
func unservableWithoutEnd(r rule.Rule) string {
	if of, ok := r.Value().(hotparam.Rule); ok && of.Concurrency != 0 {
		return unservableConcurrency
	}
	if r.Counts() != "" {
		return unservableCounts
	}
	return Unservable(r.Type())
}

// check returns the rules of which a function has something to say, in the order of the documents.
func check(set rules.Set, judge func(rule.Rule) string, custom []rule.Definition) error {
	var problems rules.Problems
	index := map[rule.Kind]int{}
	for r := range rules.NewTable(custom...).All(set) {
		key := r.Key()
		if message := judge(r); message != "" {
			at, _ := set.Position(key.Kind, key.Name)
			problems = append(problems, rules.Problem{
				Document: at.Document, Line: at.Line, Column: at.Column, Kind: key.Kind, Index: index[key.Kind], Rule: key.Name,
				Message: message,
			})
		}
		index[key.Kind]++
	}
	return problems.Err()
}

// Source wraps a source of rule documents for an engine that decides for the servers of this
// package: a document with a rule that cannot be served, see [Check], is rejected as one that
// has a mistake is. What was in force of it stays. custom are the kinds of core.Config.Kinds.
func Source(source core.Source, custom ...rule.Definition) core.Source {
	return checkedSource{source, rules.NewTable(custom...), custom, Check}
}

// SourceHTTP is [Source] for an engine that decides for no [RLS] and no [Hold], see [CheckHTTP].
func SourceHTTP(source core.Source, custom ...rule.Definition) core.Source {
	return checkedSource{source, rules.NewTable(custom...), custom, CheckHTTP}
}

// LogNoQuotas wraps a source of rule documents for an engine that decides for an [RLQS], too: it
// logs the rules of documents that set no quota, see [CheckQuotas], whenever a document comes. They
// are in force for other services.
func LogNoQuotas(source core.Source, logger *slog.Logger, custom ...rule.Definition) core.Source {
	return quotaSource{checkedSource{source, rules.NewTable(custom...), custom, Check}, logger}
}

type quotaSource struct {
	checkedSource
	logger *slog.Logger
}

func (s quotaSource) Run(ctx context.Context, sink core.Sink) error {
	return s.Source.Run(ctx, quotaSink{sink, s})
}

type quotaSink struct {
	core.Sink
	source quotaSource
}

func (s quotaSink) Apply(change core.Change) {
	for i := range change.Documents {
		d := &change.Documents[i]
		if d.Err != nil {
			continue
		}
		set, err := s.source.table.Parse(d.Name, d.Data)
		if err != nil {
			continue // the engine says it
		}
		for r := range s.source.table.All(set) {
			if why := unservableQuota(r); why != "" && unservableRule(r) == "" {
				at, _ := set.Position(r.Key().Kind, r.Key().Name)
				s.source.logger.Warn("penstock: a rule sets no quota", slog.String("rule", r.Key().String()),
					slog.String("at", fmt.Sprintf("%s:%d", at.Document, at.Line)), slog.String("why", string(r.Key().Kind)+" "+why))
			}
		}
	}
	s.Sink.Apply(change)
}

type checkedSource struct {
	core.Source
	table  *rules.Table
	custom []rule.Definition
	judge  func(rules.Set, ...rule.Definition) error
}

func (s checkedSource) Run(ctx context.Context, sink core.Sink) error {
	return s.Source.Run(ctx, checkedSink{sink, s})
}

type checkedSink struct {
	core.Sink
	source checkedSource
}

func (s checkedSink) Apply(change core.Change) {
	change.Documents = slices.Clone(change.Documents) // the source may keep them
	for i := range change.Documents {
		if d := &change.Documents[i]; d.Err == nil {
			d.Err = s.source.check(d.Name, d.Data)
		}
	}
	s.Sink.Apply(change)
}

// check returns what of a document cannot be served. That the document has mistakes is left
// to the engine to say.
func (s checkedSource) check(name string, data []byte) error {
	set, err := s.table.Parse(name, data)
	if problems := rules.Problems(nil); errors.As(err, &problems) {
		return nil
	}
	return s.judge(set, s.custom...)
}
