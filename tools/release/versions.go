package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// change is a file with its new content.
type change struct {
	name    string // relative to the root
	content []byte
}

// set puts a version into all modules, into go.work and into the file VERSION, or only
// prints what would change.
func (r *repository) set(ctx context.Context, out io.Writer, version string, dry bool) error {
	changes, err := r.versionChanges(version)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if dry {
			fmt.Fprintln(out, "would change:", c.name)
		} else if err := r.apply(ctx, out, c, false); err != nil {
			return err
		}
	}
	return nil
}

// versionChanges returns the files that change when the version is put into all modules.
func (r *repository) versionChanges(version string) (changes []change, err error) {
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	files := []change{
		{versionFile, []byte(version + "\n")},
		{"go.work", r.workFile(version)},
		{dependabotFile, r.dependabot()},
	}
	for _, m := range r.modules {
		if err := r.require(m.file, m, version); err != nil {
			return nil, err
		}
		files = append(files, change{m.modFile(), modfile.Format(m.file.Syntax)})
	}
	for _, f := range files {
		present, err := r.readFile(f.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !bytes.Equal(present, f.content) {
			changes = append(changes, f)
		}
	}
	return changes, nil
}

// require makes the go.mod of a module require one version of the modules of this
// repository, and takes out what replaces them, unless the module is not in go.work.
func (r *repository) require(file *modfile.File, m *module, version string) error {
	for _, required := range slices.Clone(file.Require) {
		if r.find(required.Mod.Path) != nil {
			if err := file.AddRequire(required.Mod.Path, version); err != nil {
				return err
			}
		}
	}
	for _, replaced := range slices.Clone(file.Replace) {
		if r.find(replaced.Old.Path) != nil && m.inWork() {
			if err := file.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
				return err
			}
		}
	}
	file.Cleanup()
	return nil
}

// workFile returns the go.work that uses all modules and finds the version of each,
// which may not be published yet, in its folder.
func (r *repository) workFile(version string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "go %s\n", r.work.Go.Version)
	if r.work.Toolchain != nil {
		fmt.Fprintf(&text, "\ntoolchain %s\n", r.work.Toolchain.Name)
	}
	text.WriteString("\nuse (\n")
	for _, m := range r.modules {
		if m.inWork() {
			fmt.Fprintf(&text, "\t%s\n", strings.TrimSuffix(folder(m.dir), "/"))
		}
	}
	text.WriteString(")\n\n// Modules require versions of each other that may not be published yet.\nreplace (\n")
	for _, m := range r.modules {
		if m.inWork() && m.released() {
			fmt.Fprintf(&text, "\t%s %s => %s\n", m.path(), version, folder(m.dir))
		}
	}
	for _, replaced := range r.work.Replace {
		if r.find(replaced.Old.Path) == nil {
			old, by := replaced.Old, replaced.New
			fmt.Fprintf(&text, "\t%s => %s\n", strings.TrimSpace(old.Path+" "+old.Version), strings.TrimSpace(by.Path+" "+by.Version))
		}
	}
	text.WriteString(")\n")
	return []byte(text.String())
}

// folder writes a folder as go.work does.
func folder(dir string) string {
	if dir == "." {
		return "./"
	}
	return "./" + dir
}
