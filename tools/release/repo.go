package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// versionFile has the version that modules require of each other.
const versionFile = "VERSION"

// repository is a checkout with its modules.
type repository struct {
	root    string // the folder
	version string // what the file VERSION says
	work    *modfile.WorkFile
	modules []*module // sorted by folder, the root module first
}

// module is one go.mod of the repository.
type module struct {
	dir  string // relative to the root, with slashes: "." or "adapters/gin"
	file *modfile.File
}

func (m *module) path() string { return m.file.Module.Mod.Path }

// released says whether the module gets a tag: examples, benchmarks and tools do not,
// since nobody imports them.
func (m *module) released() bool {
	switch first, _, _ := strings.Cut(m.dir, "/"); first {
	case "examples", "bench", "tools":
		return false
	}
	return true
}

// oldest says whether the module requires the oldest versions that it works with, for
// the sake of those who require it. Nobody requires a command: it has the newest.
func (m *module) oldest() bool { return m.released() && !strings.HasPrefix(m.dir, "cmd/") }

// inWork says whether the module belongs into go.work. The others have replace
// directives of their own.
func (m *module) inWork() bool { return m.dir != "bench" }

// tag returns the name of the module's tag: Go wants the folder before the version.
func (m *module) tag(version string) string { return path.Join(m.dir, version) }

// open finds the repository that contains dir and reads its modules.
func open(dir string) (*repository, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, versionFile)); err == nil {
			return read(dir)
		}
		if dir == filepath.Dir(dir) {
			return nil, fmt.Errorf("no folder above has a file %s: run this in the repository", versionFile)
		}
		dir = filepath.Dir(dir)
	}
	return nil, err
}

// read reads the modules of the repository at root.
func read(root string) (*repository, error) {
	r := &repository{root: root}
	text, err := r.readFile(versionFile)
	if err != nil {
		return nil, err
	}
	r.version = strings.TrimSpace(string(text))
	if err := checkVersion(r.version); err != nil {
		return nil, fmt.Errorf("%s: %w", versionFile, err)
	}
	if text, err = r.readFile("go.work"); err != nil {
		return nil, err
	}
	if r.work, err = modfile.ParseWork("go.work", text, nil); err != nil {
		return nil, err
	}
	if err := r.readModules(); err != nil {
		return nil, err
	}
	if len(r.modules) == 0 || r.modules[0].dir != "." {
		return nil, fmt.Errorf("%s has no go.mod", root)
	}
	return r, r.checkPaths()
}

// readModules reads every go.mod of the repository.
func (r *repository) readModules() error {
	err := eachFile(r.root, func(name string) error {
		if path.Base(name) != "go.mod" {
			return nil
		}
		text, err := r.readFile(name)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, text, nil)
		r.modules = append(r.modules, &module{dir: path.Dir(name), file: file})
		return err
	})
	slices.SortFunc(r.modules, func(a, b *module) int { return strings.Compare(a.dir, b.dir) })
	return err
}

// readFile reads a file whose name is relative to the root.
func (r *repository) readFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
}

// eachFile calls visit for the files below root, but for hidden folders and those that
// programs are built into. The names have slashes and are relative to root.
func eachFile(root string, visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || name == "bin" || name == "dist"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		return visit(name)
	})
}

// checkPaths reports modules whose path does not fit their folder: nobody could
// download them.
func (r *repository) checkPaths() error {
	var errs []error
	for _, m := range r.modules {
		if want := path.Join(r.modules[0].path(), m.dir); m.path() != want {
			errs = append(errs, fmt.Errorf("%s: the module is called %s; in this folder it has to be %s", m.modFile(), m.path(), want))
		}
	}
	return errors.Join(errs...)
}

// modFile returns the name of the go.mod, relative to the root.
func (m *module) modFile() string { return path.Join(m.dir, "go.mod") }

// find returns the module with the path, or nil.
func (r *repository) find(modulePath string) *module {
	for _, m := range r.modules {
		if m.path() == modulePath {
			return m
		}
	}
	return nil
}

// checkVersion reports versions that cannot be tags of these modules.
func checkVersion(version string) error {
	switch {
	case semver.Canonical(version) != version || semver.Build(version) != "":
		return fmt.Errorf("%q is no version of a module; write it like v0.3.0", version)
	case semver.Major(version) > "v1":
		return fmt.Errorf("%s: from v2 on, a module's path ends with its major version, which this program does not do", version)
	}
	return nil
}

// git runs git and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, nil, "git", args...)
}

// output runs a program and returns its standard output. The error has what it wrote to
// standard error.
func output(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // git and go
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s", program, strings.Join(args, " "), dir, err, said.Bytes())
	}
	return string(text), nil
}
