package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes the released modules, as they are in the working tree, into dir, in the
// layout of a module proxy: GOPROXY=file://dir finds them there. They require each other
// with the version.
func (r *repository) proxy(dir, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	var names []string
	if err := eachFile(r.root, func(name string) error {
		names = append(names, name)
		return nil
	}); err != nil {
		return err
	}
	for _, m := range r.modules {
		if !m.released() {
			continue
		}
		if err := r.proxyModule(dir, version, m, names); err != nil {
			return err
		}
	}
	return nil
}

// proxyModule writes one module.
func (r *repository) proxyModule(dir, version string, m *module, names []string) error {
	goMod, err := r.publishedGoMod(m, version)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	id := gomod.Version{Path: m.path(), Version: version}
	if err := zip.Create(&archive, id, r.zipFiles(m, names, goMod)); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	escaped, err := gomod.EscapePath(m.path())
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // like what it is made of
		return err
	}
	for name, content := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": info, version + ".mod": goMod, version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { //nolint:gosec // like what it is made of
			return err
		}
	}
	return nil
}

// publishedGoMod returns the module's go.mod with the version.
func (r *repository) publishedGoMod(m *module, version string) ([]byte, error) {
	file, err := modfile.Parse(m.modFile(), modfile.Format(m.file.Syntax), nil)
	if err != nil {
		return nil, err
	}
	if err := r.require(file, m, version); err != nil {
		return nil, err
	}
	return modfile.Format(file.Syntax), nil
}

// zipFiles returns the files of one module: those below its folder that are in no other
// module, with the license of the repository, which Go adds to modules that have none.
func (r *repository) zipFiles(m *module, names []string, goMod []byte) (files []zip.File) {
	var dirs []string
	for _, other := range r.modules {
		dirs = append(dirs, other.dir)
	}
	license := false
	for _, name := range names {
		if moduleOf(dirs, name) != m.dir {
			continue
		}
		file := zipFile{name: name, path: strings.TrimPrefix(name, strings.TrimPrefix(m.dir+"/", "./")), root: r.root}
		if file.path == "go.mod" {
			file.content = goMod
		}
		license = license || file.path == "LICENSE"
		files = append(files, file)
	}
	if !license {
		files = append(files, zipFile{name: "LICENSE", path: "LICENSE", root: r.root})
	}
	return files
}

// moduleOf returns the folder of the module that a file belongs to.
func moduleOf(dirs []string, name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if slices.Contains(dirs, dir) {
			return dir
		}
	}
	return "."
}

// zipFile is a file of the repository in a module's zip.
type zipFile struct {
	root, name string
	path       string // in the zip
	content    []byte // nil: that of the file
}

func (f zipFile) Path() string { return f.path }

func (f zipFile) Lstat() (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(f.root, f.name))
	if f.content != nil {
		info = sized{info, int64(len(f.content))}
	}
	return info, err
}

func (f zipFile) Open() (io.ReadCloser, error) {
	if f.content != nil {
		return io.NopCloser(bytes.NewReader(f.content)), nil
	}
	return os.Open(filepath.Join(f.root, f.name))
}

// sized is about a file with another size.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
