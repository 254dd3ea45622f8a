package overload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// The section of the page that is written anew. What stands around it is kept.
const (
	sectionBegins = "<!-- bench:overload -->\n"
	sectionEnds   = "<!-- /bench:overload -->"
)

// writeDocs writes a comparison of protections into the page overload.md of a folder, and
// pictures into the folder images there.
func writeDocs(
	ctx context.Context, folder string, list []scenario, pictures []image, protections []protection, seeds int,
) error {
	page := filepath.Join(folder, "overload.md")
	text, err := os.ReadFile(page) //nolint:gosec // a file that the user names
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), sectionBegins)
	_, after, ends := strings.Cut(rest, sectionEnds)
	if !begins || !ends {
		return fmt.Errorf("%s: it needs a line %q and below it a line %q", page, strings.TrimSpace(sectionBegins), sectionEnds)
	}
	reports, err := runAll(ctx, list, protections, seeds)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		if err := p.write(ctx, folder, protections); err != nil {
			return err
		}
	}
	table := markdown(protections, reports)
	return os.WriteFile(page, []byte(before+sectionBegins+"\n"+table+"\n"+sectionEnds+after), 0o644) //nolint:gosec // a page for all
}

// markdown returns a table of all goals. What is reached is bold.
func markdown(protections []protection, reports [][]report) string {
	var b strings.Builder
	b.WriteString("| scenario | goal | want |")
	for _, p := range protections {
		b.WriteString(" " + p.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat("---|", 3+len(protections)) + "\n")
	reached, goals := make([]int, len(protections)), 0
	for _, row := range reports {
		for i, g := range row[0].scenario.goals {
			fmt.Fprintf(&b, "| %s | %s | %s |", row[0].scenario.name, g.name, g.want())
			for j := range row {
				mean := row[j].mean(i)
				if g.reached(mean) {
					reached[j]++
					fmt.Fprintf(&b, " **%s** |", g.number(mean))
				} else {
					fmt.Fprintf(&b, " %s |", g.number(mean))
				}
			}
			b.WriteString("\n")
			goals++
		}
	}
	fmt.Fprintf(&b, "| **goals reached** | | %d |", goals)
	for _, n := range reached {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString("\n")
	return b.String()
}

// image is a picture of one scenario, with a row of graphs for each protection.
type image struct {
	file, title string
	scenario    string
	graphs      []timeGraph
}

// timeGraph shows lines over time.
type timeGraph struct {
	title string
	top   float64 // of the scale
	lines []timeLine
}

// timeLine is a measure of each second.
type timeLine struct {
	name    string
	measure func(o *outcome, in span) float64
}

func pictures() []image {
	share := timeLine{"goodput / capacity", func(o *outcome, in span) float64 { return o.goodput(in) / o.service.capacity() }}
	late := timeLine{"p99 of what clients wait, ms", func(o *outcome, in span) float64 { return 1000 * o.latency(in, 99) }}
	loads := []timeGraph{{share.name, 1.2, []timeLine{share}}, {late.name, 250, []timeLine{late}}}
	var levels []timeLine
	for _, p := range []rule.Priority{rule.PriorityHigh, rule.PriorityNormal, rule.PriorityLow} {
		levels = append(levels, timeLine{p.String(), func(o *outcome, in span) float64 { return served(p, in.from, in.to)(o) }})
	}
	return []image{
		{"overload-steps.svg", "Demand of 0.5, 3, 0.8, 10, 0.3, 1.5, 0.7, 5, 0.5 and 2 times the capacity, ten seconds each", "steps up and down", loads},
		{"overload-slow.svg", "A service at 0.9 times its capacity takes four times as long from second 20 to 30", "service × 4 for 10 s at 0.9 ×", loads},
		{"overload-priorities.svg", "Calls of three priorities, 0.5 times the capacity until second 10, then three times", "three priorities at 3 ×", []timeGraph{
			{"share of the calls that end well: high solid, normal dashed, low dotted", 1.05, levels}, {late.name, 250, []timeLine{late}},
		}},
	}
}

// write runs the scenario and writes the picture.
func (p image) write(ctx context.Context, folder string, protections []protection) error {
	var s scenario
	for _, of := range scenarios() {
		if of.name == p.scenario {
			s = of
		}
	}
	outcomes := make([]*outcome, len(protections))
	for i, by := range protections {
		var err error
		if outcomes[i], err = simulateScenario(ctx, s, by, 1); err != nil {
			return err
		}
	}
	images := filepath.Join(folder, "images")
	if err := os.MkdirAll(images, 0o755); err != nil { //nolint:gosec // a folder for all
		return err
	}
	return os.WriteFile(filepath.Join(images, p.file), []byte(p.draw(protections, outcomes)), 0o644) //nolint:gosec // a picture for all
}

// seconds returns the seconds of a run.
func (o *outcome) seconds() (list []span) {
	for t := time.Duration(0); t+time.Second <= o.duration; t += time.Second {
		list = append(list, span{t, t + time.Second})
	}
	return list
}
