package command_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

func TestHelpListsTheCommands(t *testing.T) {
	help := user{}.run(t)
	assert.Equal(t, command.ExitDone, help.code)
	for _, name := range []string{
		"example", "validate", "simulate", "test", "convert", "explain",
		"diff", "push", "pull", "history", "rollback", "confirm", "status", "lists", "serve", "top", "console", "control", "metrics", "completion",
	} {
		assert.Contains(t, help.out, "\n  "+name+" ")
	}
	assert.Equal(t, help, user{}.run(t, "--help"))
	assert.Equal(t, help, user{}.run(t, "help"))
	assert.Equal(t, user{}.run(t, "push", "--help"), user{}.run(t, "help", "push"))
}

func TestHelpOfCommands(t *testing.T) {
	for _, name := range []string{
		"example", "validate", "simulate", "test", "convert", "explain", "diff", "push", "pull", "history", "rollback", "confirm", "status", "serve", "top", "console", "record", "control", "metrics",
	} {
		help := user{}.run(t, name, "--help")
		assert.Equal(t, command.ExitDone, help.code)
		assert.Empty(t, help.err)
		assert.Contains(t, help.out, "\nExit code: 0", name)
		assert.Contains(t, help.out, "\nExamples:\n", name)
		golden(t, "help/"+name+".txt", help.out, "")
	}
}

func TestHelpOfListCommands(t *testing.T) {
	golden(t, "help/lists.txt", user{}.run(t, "lists").out, "")
	for _, name := range []string{"push", "add", "remove", "list", "pull", "history", "rollback", "delete"} {
		help := user{}.run(t, "lists", name, "--help")
		assert.Equal(t, command.ExitDone, help.code)
		assert.Empty(t, help.err)
		assert.Contains(t, help.out, "\nExit code: 0", name)
		assert.Contains(t, help.out, "\nExamples:\n", name)
		assert.Equal(t, help, user{}.run(t, "help", "lists", name))
		golden(t, "help/lists_"+name+".txt", help.out, "")
	}
}

func TestCompletionsOfFormats(t *testing.T) {
	for _, arguments := range [][]string{{"validate", "-o"}, {"simulate", "--output"}} {
		got := user{}.run(t, append([]string{"__complete"}, append(arguments, "")...)...)
		assert.Contains(t, got.out, "text\njson\n")
		assert.Equal(t, arguments[0] == "simulate", strings.Contains(got.out, "svg\n"))
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := user{}.run(t, "completion", shell)
		assert.Equal(t, command.ExitDone, got.code)
		assert.Contains(t, got.out, "__complete")
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	sound, load, broken := filepath.Join(directory, "rules"), filepath.Join(directory, "load.yaml"), filepath.Join(directory, "broken")
	for _, arguments := range [][]string{
		{},
		{"push", "--help"},
		{"--version"},
		{"completion", "bash"},
		{"validate", sound},
		{"validate", sound, "-o", "json"},
		{"validate", broken},
		{"diff", sound, "--against", sound},
		{"diff", sound, "--against", sound, "-o", "json"},
		{"explain", "carts", "--rules", sound},
		{"example"},
		{"convert", "-"},
		{"simulate", "--rules", sound, "--load", load},
		{"simulate", "--rules", sound, "--load", load, "-o", "svg"},
		{"test", suites(t)},
	} {
		var errs strings.Builder
		code := command.Run(t.Context(), command.Env{
			In: strings.NewReader("[]"), Out: full{}, Err: &errs, Getenv: func(string) string { return "" },
		}, arguments)
		assert.Equal(t, command.ExitFailed, code, arguments)
		assert.Equal(t, "penstock: the answer cannot be written: no space left\n", errs.String(), arguments)
	}
}

func TestWrongCommandLinesExitWith2AndSayWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":           {[]string{"valdate"}, "Did you mean this?\n\tvalidate"},
		"help with an unknown command": {[]string{"help", "nope"}, `there is no command "nope": penstock --help lists them`},
		"a revision beside its flag":   {[]string{"status", "--wait", "57"}, "a revision to wait for is joined to the flag: --wait=57"},
		"an unknown flag":              {[]string{"push", "--yess", "x"}, "unknown flag: --yess\nSee penstock push --help."},
		"an unknown format":            {[]string{"validate", "--output", "xml", "x"}, "must be text or json"},
		"no path":                      {[]string{"validate"}, "which documents? Name files, directories, or - for standard input"},
		"a push of standard input":     {[]string{"push", "--yes", "-"}, "standard input has no name"},
		"a push without --yes":         {[]string{"push", "x"}, "there is no terminal to ask on: say --yes to go ahead, or --dry-run to look only"},
		"a dry run to wait for":        {[]string{"push", "x", "--dry-run", "--wait"}, "leave one out"},
		"a revision below 0":           {[]string{"push", "x", "--yes", "--expect-rev=-1"}, "--expect-rev must be a revision"},
		"no time to wait":              {[]string{"push", "x", "--yes", "--timeout=0s"}, "--timeout must be longer than nothing"},
		"no time to wait for status":   {[]string{"status", "--wait", "--timeout=0s"}, "--timeout must be longer than nothing"},
		"instances to wait for":        {[]string{"status", "--min-instances=2"}, "--min-instances says how many --wait waits for: add --wait"},
		"fewer than no instances":      {[]string{"push", "x", "--yes", "--wait", "--min-instances=-1"}, "--min-instances must not be negative"},
		"a status of what":             {[]string{"status", "--wait=soon"}, `"soon" is no revision`},
		"a rollback to what":           {[]string{"rollback", "yesterday"}, `"yesterday" is no revision: penstock history lists them`},
		"a rollback to nothing":        {[]string{"rollback"}, "to which revision? penstock history lists them"},
		"a rollback to two":            {[]string{"rollback", "1", "2"}, `unexpected argument "2"`},
		"a pull into two":              {[]string{"pull", "a", "b"}, `unexpected argument "b"`},
		"an argument of history":       {[]string{"history", "shop"}, `unexpected argument "shop"`},
		"an argument of status":        {[]string{"status", "shop"}, `unexpected argument "shop"`},
		"an unknown shell":             {[]string{"completion", "tcsh"}, `unexpected argument "tcsh"`},
		"a diff of standard input":     {[]string{"diff", "-"}, "standard input has no name"},
		"a negative limit":             {[]string{"history", "--limit=-1"}, "--limit must not be negative"},
		"an unknown command of lists":  {[]string{"lists", "show"}, `unexpected argument "show"`},
		"a push of no list":            {[]string{"lists", "push", "l"}, "which list, and which file?"},
		"a list without a name":        {[]string{"lists", "push", "", "l.txt", "--yes"}, "the name of the list is empty"},
		"a list from standard input":   {[]string{"lists", "push", "l", "-", "--yes"}, "standard input cannot be read twice"},
		"a push of a list unasked":     {[]string{"lists", "push", "l", "l.txt"}, "say --yes to go ahead, or --dry-run to look only"},
		"a list's revision below 0":    {[]string{"lists", "push", "l", "l.txt", "--yes", "--expect-rev=-1"}, "--expect-rev must be a revision"},
		"a pull of no list":            {[]string{"lists", "pull"}, "which list? penstock lists list shows them"},
		"a deletion unasked":           {[]string{"lists", "delete", "l"}, "there is no terminal to ask on: say --yes"},
		"lists beside an engine":       {[]string{"explain", "x", "--engine", "localhost:1", "--lists", "x"}, "leave --lists out"},
		"no application":               {[]string{"history"}, "which rules are meant?"},
	} {
		t.Run(name, func(t *testing.T) {
			got := user{}.run(t, test.args...)
			assert.Equal(t, command.ExitUsage, got.code)
			assert.Contains(t, got.err, test.want)
			assert.Empty(t, got.out)
		})
	}
}

func TestVersionAndCompletion(t *testing.T) {
	assert.Regexp(t, `^penstock version .+\n$`, user{}.run(t, "--version").out)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := user{}.run(t, "completion", shell)
		assert.Equal(t, command.ExitDone, got.code)
		assert.Contains(t, got.out, "penstock")
	}
}
