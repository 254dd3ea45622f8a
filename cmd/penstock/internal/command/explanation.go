package command

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// whyNot returns why a rule that matches the resource does not apply to the call: it excepts the
// resource, or that is exempt, or the rule is for other callers.
func whyNot(target rule.Target, call inspect.Call) string {
	if _, excepts := target.Covers(call.Resource); excepts {
		return "excepts the resource"
	}
	if target.Origin == "" {
		return "has a pattern, and the resource is exempt from those unless an engine says otherwise: name it in a rule of its own"
	}
	if target.Origin == rule.OtherOrigins {
		return fmt.Sprintf("is for callers that no rule here names, and one names %q", call.Origin)
	}
	return fmt.Sprintf("is only for calls of %q", target.Origin)
}

// printExplanation prints an explanation as text.
func (env Env) printExplanation(of explanation) {
	var text bytes.Buffer
	caller := "by a caller who is not named"
	if of.Origin != "" {
		caller = "by " + of.Origin
	}
	if len(of.Rules) == 0 {
		fmt.Fprintf(&text, "No rule applies to a call of %s %s: it passes and is counted.\n", of.Resource, caller)
	} else {
		fmt.Fprintf(&text, "A call of %s %s is held against %s, in this order:\n",
			of.Resource, caller, wording.Count(len(of.Rules), "rule"))
	}
	for i, rule := range of.Rules {
		fmt.Fprintf(&text, "\n%d. %s\n   %s\n", i+1, heading(rule), fieldList(rule))
		if len(rule.Attributes) > 0 {
			fmt.Fprintf(&text, "   looks at %s\n", describeAttributes(rule.Attributes))
		}
		if rule.PartitionKey != "" {
			fmt.Fprintf(&text, "   RateLimit fields have pk=:%s:\n", rule.PartitionKey)
		}
		if rule.Shadow {
			fmt.Fprintln(&text, "   a shadow: it refuses nothing")
		}
		if rule.Off {
			fmt.Fprintln(&text, "   switched off: it refuses nothing")
		}
		if rule.State != nil {
			fmt.Fprintf(&text, "   %s\n", describeState(*rule.State))
			writeNotes(&text, "   ", rule.State.Notes)
			writeValues(&text, "   ", rule.State.Values)
		}
	}
	for i, miss := range of.NotApplied {
		if i == 0 {
			fmt.Fprintln(&text, "\nNot held against:")
		}
		fmt.Fprintf(&text, "\n- %s\n  %s\n  %s\n", heading(miss.Rule), fieldList(miss.Rule), miss.Reason)
	}
	writeInstances(&text, of)
	for line := range bytes.Lines(text.Bytes()) {
		fmt.Fprintln(env.Out, wording.Printable(strings.TrimSuffix(string(line), "\n")))
	}
}

// heading returns the name of a rule and its place.
func heading(rule inspect.Rule) string {
	place := "made in code"
	if rule.Document != "" {
		place = fmt.Sprintf("%s:%d:%d", rule.Document, rule.Line, rule.Column)
	}
	if rule.Source != "" {
		place += " in " + rule.Source
	}
	return fmt.Sprintf("%s rule %q, %s", rule.Kind, rule.Name, place)
}

func fieldList(rule inspect.Rule) string {
	fields := make([]string, len(rule.Fields))
	for i, f := range rule.Fields {
		fields[i] = f.Name + " " + cmp.Or(f.Value, `""`)
	}
	return strings.Join(fields, ", ")
}

// describeAttributes returns what a rule finds in the attributes of a call, written as
// --attr takes it.
func describeAttributes(attributes []inspect.Attribute) string {
	texts := make([]string, len(attributes))
	for i, a := range attributes {
		texts[i] = a.Key + "=" + a.Value
		switch {
		case a.Type == "":
			texts[i] = a.Key + " (the call has none)"
		case a.Type == "text" && !rule.ParseAttribute(a.Value).Equal(rule.String(a.Value)): // it looks like another type
			texts[i] = a.Key + "=" + strconv.Quote(a.Value)
		}
	}
	return strings.Join(texts, " and ")
}

// describeState returns the state of a rule as text.
func describeState(s inspect.State) string {
	var parts []string
	if s.State != "" {
		parts = append(parts, s.State)
	}
	if q := s.Quota; q != nil {
		part := fmt.Sprintf("%s per %v, %s remaining", decimal(float64(q.Effective)), duration(q.Window), leftText(q))
		switch {
		case q.Prepaid:
			part = fmt.Sprintf("a balance, %s left", leftText(q))
		case q.Effective.IsInfinite():
			part = "all calls pass"
		case q.Reset > 0:
			part += fmt.Sprintf(", more in %v", duration(q.Reset))
		}
		parts = append(parts, part)
	}
	parts = append(parts, describeGauges(s.Gauges)...)
	text := "now " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "in force"
	}
	if s.Blocked > 0 {
		text += fmt.Sprintf("; has refused %s", count(s.Blocked))
	}
	if s.WouldBlock > 0 {
		text += fmt.Sprintf("; would have refused %s", count(s.WouldBlock))
	}
	if s.Demoted > 0 {
		text += fmt.Sprintf("; has demoted %s", count(s.Demoted))
	}
	switch {
	case s.CannotPass:
		text += "; such a call cannot pass"
	case s.RetryAfter > 0:
		text += fmt.Sprintf("; such a call passes in %v", duration(s.RetryAfter))
	}
	return text
}

// describeGauges writes gauges as text. Of those that a label tells apart, the ones that
// are 0 are left out.
func describeGauges(gauges []inspect.Gauge) (texts []string) {
	for i, gauge := range gauges {
		name := strings.ReplaceAll(gauge.Name, "_", " ")
		switch first := i == 0 || gauges[i-1].Name != gauge.Name; {
		case gauge.Label == "":
			texts = append(texts, name+" "+decimal(gauge.Value))
		case first:
			texts = append(texts, name+labelled(gauges[i:]))
		}
	}
	return texts
}

// labelled writes the first gauges that have one name, such as " 7 low, 1 high"; " 0" if
// all are 0.
func labelled(gauges []inspect.Gauge) string {
	var texts []string
	for _, gauge := range gauges {
		if gauge.Name != gauges[0].Name {
			break
		}
		if gauge.Value != 0 {
			texts = append(texts, decimal(gauge.Value)+" "+gauge.LabelValue)
		}
	}
	if len(texts) == 0 {
		return " 0"
	}
	return " " + strings.Join(texts, ", ")
}

func count(calls uint64) string { return wording.Count(int(calls), "call") }

// duration converts seconds to a duration, rounded to 0.1 ms.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond / 10)
}

// decimal formats a number with at most three decimals.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
