package rule

import "github.com/penstock-go/penstock/internal/document"

// Definition is what there is to know of a kind of rule without the type of its rules: what a [Spec] says,
// for code that handles rules of all kinds.
type Definition interface {
	// Kind returns the name of the kind, Phase when its rules are asked, and Reason that of refusals by them.
	Kind() Kind
	Phase() Phase
	Reason() Reason

	// Fields returns what documents may say, and Former what older ones may.
	Fields() []document.Field
	Former() []document.Former

	// Gauges returns the numbers that limiters of the kind show, and LimitMoves says that these find
	// their limit themselves.
	Gauges() []Gauge
	LimitMoves() bool

	// CanShare says that limits of rules can be for all instances of a service, see [Spec.Fleet].
	CanShare() bool

	// CanDemote says that rules can demote calls, see [Spec.Demotes].
	CanDemote() bool

	// States returns the states that limiters can be in, and Controls those that can be forced.
	States() []string
	Controls() []string

	// Draft returns a rule with no field set.
	Draft() Rule

	// Examples returns rules, not completed, that show all fields between them.
	Examples() []Example[Rule]
}

// definition is the Definition of a [Type].
type definition struct {
	kind     Kind
	phase    Phase
	reason   Reason
	fields   []document.Field
	former   []document.Former
	gauges   []Gauge
	states   []string
	controls []string

	limitMoves, canShare, canDemote bool

	draft    func() Rule
	examples func() []Example[Rule]
}

func (d *definition) Kind() Kind                { return d.kind }
func (d *definition) Phase() Phase              { return d.phase }
func (d *definition) Reason() Reason            { return d.reason }
func (d *definition) Fields() []document.Field  { return d.fields }
func (d *definition) Former() []document.Former { return d.former }
func (d *definition) Gauges() []Gauge           { return d.gauges }
func (d *definition) LimitMoves() bool          { return d.limitMoves }
func (d *definition) CanShare() bool            { return d.canShare }
func (d *definition) CanDemote() bool           { return d.canDemote }
func (d *definition) States() []string          { return d.states }
func (d *definition) Controls() []string        { return d.controls }
func (d *definition) Draft() Rule               { return d.draft() }
func (d *definition) Examples() []Example[Rule] { return d.examples() }
