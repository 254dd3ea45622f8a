package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

var errUntidy = errors.New("modules are not tidy: run make tidy")

// tidy puts the version into all modules, gives them the test tools of the root module,
// and runs go mod tidy in each, as if the version was published. With diff it changes nothing, prints what would change, and
// fails if anything would.
func (r *repository) tidy(ctx context.Context, out io.Writer, diff bool) error {
	changes, err := r.versionChanges(r.version)
	if err != nil {
		return err
	}
	clean := true
	for _, c := range changes {
		if path.Base(c.name) == "go.mod" {
			continue // comes below
		}
		clean = false
		if err := r.apply(ctx, out, c, diff); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp("", "tidy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, m := range r.ordered() {
		changes, err := r.tidyModule(ctx, temp, m)
		if err != nil {
			return err
		}
		for _, c := range changes {
			clean = false
			if err := r.apply(ctx, out, c, diff); err != nil {
				return err
			}
		}
	}
	if diff && !clean {
		return errUntidy
	}
	return nil
}

// tidyModule returns what go mod tidy changes in one module.
func (r *repository) tidyModule(ctx context.Context, temp string, m *module) (changes []change, err error) {
	if err := r.lowerTestTools(m); err != nil {
		return nil, err
	}
	name, err := r.standalone(temp, m)
	if err != nil {
		return nil, err
	}
	if _, err := output(ctx, r.folder(m), []string{outsideWorkspace}, "go", "mod", "tidy", "-modfile="+name); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name) //nolint:gosec // just written
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	if err := r.require(file, m, r.version); err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(sumFile(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, c := range []change{{m.modFile(), modfile.Format(file.Syntax)}, {sumFile(m.modFile()), sums}} {
		present, err := r.readFile(c.name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if !bytes.Equal(present, c.content) {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// lowerTestTools gives a module that requires the oldest versions those of the root
// module, of what only tests need. What else the module requires may raise them again.
func (r *repository) lowerTestTools(m *module) error {
	for _, tool := range r.modules[0].file.Require {
		needed := slices.ContainsFunc(m.file.Require, func(required *modfile.Require) bool { return required.Mod.Path == tool.Mod.Path })
		if m.oldest() && needed && isTestTool(tool.Mod.Path) {
			if err := m.file.AddRequire(tool.Mod.Path, tool.Mod.Version); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTestTool says whether only tests of this repository import a module.
func isTestTool(path string) bool {
	switch path {
	case "github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid":
		return true
	}
	return false
}

// apply writes a file, or prints the difference.
func (r *repository) apply(ctx context.Context, out io.Writer, c change, diff bool) error {
	name := filepath.Join(r.root, c.name)
	if !diff {
		fmt.Fprintln(out, "changed:", c.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // sources are readable
			return err
		}
		return os.WriteFile(name, c.content, 0o644) //nolint:gosec // sources are readable
	}
	if _, err := os.Stat(name); err != nil {
		fmt.Fprintln(out, "missing:", c.name)
		return nil
	}
	command := exec.CommandContext(ctx, "git", "diff", "--no-index", c.name, "-") //nolint:gosec // a file of the repository
	command.Dir, command.Stdin, command.Stdout = r.root, bytes.NewReader(c.content), out
	var differs *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &differs) {
		return err
	}
	return nil
}

// outsideWorkspace is what the environment of commands has that ignore go.work.
const outsideWorkspace = "GOWORK=off"

// standalone writes copies of a module's go.mod and go.sum into the folder temp and
// returns the name of the go.mod. In the copy, the modules of this repository are
// replaced with their folders: the versions that modules require of each other may not
// be published yet.
func (r *repository) standalone(temp string, m *module) (string, error) {
	name := filepath.Join(temp, "go.mod")
	file, err := modfile.Parse(name, modfile.Format(m.file.Syntax), nil)
	if err != nil {
		return "", err
	}
	for _, other := range r.modules {
		if m.inWork() && other != m && other.released() {
			if err := file.AddReplace(other.path(), "", r.folder(other), ""); err != nil {
				return "", err
			}
		}
	}
	if err := os.WriteFile(name, modfile.Format(file.Syntax), 0o600); err != nil {
		return "", err
	}
	sums, err := r.readFile(sumFile(m.modFile()))
	if errors.Is(err, os.ErrNotExist) {
		sums, err = nil, nil
	}
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(sumFile(name), sums, 0o600)
}

// folder returns the folder of a module in the file system.
func (r *repository) folder(m *module) string {
	return filepath.Join(r.root, filepath.FromSlash(m.dir))
}

// sumFile returns the name of the go.sum beside a go.mod.
func sumFile(modFile string) string { return strings.TrimSuffix(modFile, ".mod") + ".sum" }

// ordered returns the modules such that each comes after those it requires.
func (r *repository) ordered() (modules []*module) {
	seen := map[*module]bool{}
	var add func(m *module)
	add = func(m *module) {
		if seen[m] {
			return
		}
		seen[m] = true
		for _, required := range m.file.Require {
			if other := r.find(required.Mod.Path); other != nil {
				add(other)
			}
		}
		modules = append(modules, m)
	}
	for _, m := range r.modules {
		add(m)
	}
	return modules
}
