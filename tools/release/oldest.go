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
	"slices"
)

// atOnce is how many modules are tested at a time: the tests of some wait most of the time.
const atOnce = 2

// oldest runs the tests of the modules in the folders, by default of all that require
// oldest versions but the root module, each with the versions that its own go.mod requires: the oldest that
// the module allows. In the workspace, all modules get the newest version that any of
// them requires. It prints what the tests of a module print when they have ended.
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
	goMods := make([]string, len(modules))
	for i, m := range modules {
		folder, err := os.MkdirTemp(temp, "")
		if err != nil {
			return err
		}
		if goMods[i], err = r.standalone(folder, m); err != nil {
			return err
		}
	}
	places, ended := make(chan struct{}, atOnce), make([]chan error, len(modules))
	printed := make([]bytes.Buffer, len(modules))
	for i, m := range modules {
		ended[i] = make(chan error, 1)
		go func() {
			places <- struct{}{}
			ended[i] <- r.testOldest(ctx, &printed[i], m, goMods[i], only)
			<-places
		}()
	}
	var errs []error
	for i := range modules {
		errs = append(errs, <-ended[i])
		_, _ = printed[i].WriteTo(out)
	}
	return errors.Join(errs...)
}

// testOldest runs the tests of a module with a go.mod in place of its own.
func (r *repository) testOldest(ctx context.Context, out io.Writer, m *module, goMod, only string) error {
	fmt.Fprintf(out, "=== %s with the oldest versions\n", m.dir)
	args := []string{"test", "-short", "-vet=off", "-modfile=" + goMod, "./..."}
	if only != "" {
		args = slices.Insert(args, 3, "-run="+only)
	}
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // go test
	command.Dir, command.Env = r.folder(m), append(os.Environ(), outsideWorkspace)
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", m.dir, err)
	}
	return nil
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
