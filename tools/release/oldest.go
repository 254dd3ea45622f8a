package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
)

// oldest runs the tests of the modules in the folders, by default of all that require
// oldest versions but the root module, each with the versions that its own go.mod requires: the oldest that
// the module allows. In the workspace, all modules get the newest version that any of
// them requires.
func (r *repository) oldest(ctx context.Context, out io.Writer, only string, folders []string) error {
	modules, err := r.choose(folders)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "oldest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var errs []error
	for _, m := range modules {
		name, err := r.standalone(temp, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "=== %s with the oldest versions\n", m.dir)
		args := []string{"test", "-short", "-modfile=" + name, "./..."}
		if only != "" {
			args = slices.Insert(args, 3, "-run="+only)
		}
		command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // go test
		command.Dir, command.Env = r.folder(m), append(os.Environ(), outsideWorkspace)
		command.Stdout, command.Stderr = out, out
		if err := command.Run(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.dir, err))
		}
	}
	return errors.Join(errs...)
}

// choose returns the modules in the folders, by default all but the root.
func (r *repository) choose(folders []string) (modules []*module, err error) {
	for _, m := range r.modules {
		if m.oldest() && (slices.Contains(folders, m.dir) || len(folders) == 0 && m.dir != ".") {
			modules = append(modules, m)
		}
	}
	var errs []error
	for _, dir := range folders {
		if !slices.ContainsFunc(modules, func(m *module) bool { return m.dir == path.Clean(dir) }) {
			errs = append(errs, fmt.Errorf("%s is not the folder of a module that requires oldest versions", dir))
		}
	}
	return modules, errors.Join(errs...)
}
