package overload

import (
	"embed"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// sceneFiles are the scenes that are files.
//
//go:embed scenes/*.yaml
var sceneFiles embed.FS

// sceneFile is a scene as it is written. Its name is that of the file.
type sceneFile struct {
	Title    string    // what happens
	Duration duration  // how long it runs
	Seeds    int       // with how many it is run
	Rules    yaml.Node // that the service has beside its protection
	Load     loadFile  // in which streams are Poisson and inbound unless they say otherwise
	Goals    []goalFile
}

// goalFile is a goal as it is written: one measure with its bound, such as
// "refused: <= 0.1%", and which calls it is about.
type goalFile struct {
	Name    string
	Class   oneOrMore // names or globs of resources; all if left out
	From    duration  // of the calls that count
	Until   duration  // 0: to the end
	Because string    // why the bound is what it is, for readers

	Measures map[string]string `yaml:",inline"`
}

// embeddedScenes returns the scenes that the program brings along.
func embeddedScenes() ([]scenario, error) { return readScenes(sceneFiles, "scenes") }

// scenesOf returns the scenes of a file, or of all .yaml files of a folder.
func scenesOf(name string) ([]scenario, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readScenes(os.DirFS(name), ".")
	}
	text, err := os.ReadFile(name) //nolint:gosec // a file that the user names
	if err != nil {
		return nil, err
	}
	s, err := parseScene(name, text)
	return []scenario{s}, err
}

func readScenes(files fs.FS, folder string) ([]scenario, error) {
	names, err := fs.Glob(files, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var list []scenario
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		s, err := parseScene(name, text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// parseScene reads a scene.
func parseScene(name string, text []byte) (scenario, error) {
	var f sceneFile
	if err := yaml.Load(text, &f, yaml.WithKnownFields()); err != nil {
		return scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	s := scenario{
		name: strings.TrimSuffix(path.Base(name), ".yaml"), title: f.Title,
		duration: time.Duration(f.Duration), seeds: max(1, f.Seeds),
	}
	load := f.Load.load()
	for i := range load.Streams {
		if stream := &load.Streams[i]; stream.Shape == "" && len(stream.Times) == 0 {
			stream.Shape = simulate.Poisson
		}
	}
	s.load = func(service) simulate.Load { return load }
	if s.duration <= 0 {
		return scenario{}, fmt.Errorf("%s: duration is missing: say how long the scene runs", name)
	}
	if faults := load.Validate(); len(faults) > 0 {
		return scenario{}, fmt.Errorf("%s: %w", name, simulate.Faults(faults))
	}
	var err error
	if s.rules, err = f.rules(name); err != nil {
		return scenario{}, err
	}
	for i, g := range f.Goals {
		of, err := g.goal(s)
		if err != nil {
			return scenario{}, fmt.Errorf("%s: goals[%d] (%s): %w", name, i, g.Name, err)
		}
		s.goals = append(s.goals, of)
	}
	if len(s.goals) == 0 {
		return scenario{}, fmt.Errorf("%s: goals are missing: say what is wanted", name)
	}
	return s, nil
}

// rules returns the rules that the service has anyway.
func (f sceneFile) rules(name string) (rules.Set, error) {
	if f.Rules.IsZero() {
		return rules.Set{}, nil
	}
	text, err := yaml.Dump(&f.Rules)
	if err != nil {
		return rules.Set{}, fmt.Errorf("%s: rules: %w", name, err)
	}
	return rules.Parse(name+" (rules)", text)
}

// goal returns the goal of a scene.
func (g goalFile) goal(s scenario) (goal, error) {
	if len(g.Measures) != 1 {
		return goal{}, fmt.Errorf("has %d measures: give one of %s", len(g.Measures), strings.Join(measureNames(), ", "))
	}
	in := span{time.Duration(g.From), time.Duration(g.Until)}
	if in.to == 0 {
		in.to = s.duration
	}
	if in.from >= in.to || in.to > s.duration {
		return goal{}, fmt.Errorf("from %v to %v: must be a part of the %v of the scene", in.from, in.to, s.duration)
	}
	classes, err := s.classes(g.Class)
	if err != nil {
		return goal{}, err
	}
	for name, bound := range g.Measures {
		of := goal{name: strings.TrimSpace(g.Name + " " + g.about(name)), least: math.NaN(), most: math.NaN()}
		measure, unit := measureOf(name, classes, in)
		if measure == nil {
			return goal{}, fmt.Errorf("unknown measure %q: must be one of %s", name, strings.Join(measureNames(), ", "))
		}
		of.measure, of.unit = measure, unit
		return of, of.bind(bound)
	}
	return goal{}, nil
}

// about says what a goal measures.
func (g goalFile) about(measure string) string {
	var b strings.Builder
	if len(g.Class) > 0 {
		b.WriteString(strings.Join(g.Class, ", ") + ": ")
	}
	b.WriteString(measure)
	if g.Until != 0 {
		fmt.Fprintf(&b, ", %v–%v", time.Duration(g.From), time.Duration(g.Until))
	} else if g.From != 0 {
		fmt.Fprintf(&b, " from %v on", time.Duration(g.From))
	}
	return b.String()
}

// bind reads a bound such as "<= 0.1%", ">= 0.9" or "<= 30ms".
func (g *goal) bind(text string) error {
	const remedy = `%q: must be such as "<= 0.1%%", ">= 0.9" or "<= 30ms"`
	operator, number, _ := strings.Cut(strings.TrimSpace(text), " ")
	number = strings.TrimSpace(number)
	value, err := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	if strings.HasSuffix(number, "%") {
		value /= 100
	}
	if err != nil {
		d, durationErr := time.ParseDuration(number)
		if value = d.Seconds(); durationErr != nil {
			return fmt.Errorf(remedy, text)
		}
	}
	switch operator {
	case "<=":
		g.most = value
	case ">=":
		g.least = value
	default:
		return fmt.Errorf(remedy, text)
	}
	return nil
}
