package connection

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

// file is a settings file; the zero value if there is none.
type file struct {
	path   string
	values map[string]string
}

// readFile reads the file that the user names, or the default file if it exists.
func readFile(ctx context.Context, flags *pflag.FlagSet, getenv func(string) string) (file, error) {
	named, _ := flags.GetString(configFlag)
	named = cmp.Or(named, getenv("PENSTOCK_CONFIG"))
	path := cmp.Or(named, defaultPath(getenv))
	if path == "" {
		return file{}, nil
	}
	data, err := files.Read(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return file{}, nil
	case err != nil:
		return file{}, fmt.Errorf("reading settings: %w", err)
	}
	settings, err := parseFile(path, data)
	return file{path, settings}, err
}

func defaultPath(getenv func(string) string) string {
	directory := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); directory == "" && home != "" {
		directory = filepath.Join(home, ".config")
	}
	if directory == "" {
		return ""
	}
	return filepath.Join(directory, "penstock", "config.yaml")
}

// parseFile parses settings. Errors never contain values, because one may be a
// password.
func parseFile(path string, data []byte) (map[string]string, error) {
	settings := make(map[string]string)
	mapping, err := readMapping(path, data)
	if mapping == nil || err != nil {
		return settings, err
	}
	var faults []error
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		text, fault := readSetting(settings, key.Value, content)
		if fault != "" {
			faults = append(faults, fmt.Errorf("%s:%d: %s", path, key.Line, fault))
		}
		settings[key.Value] = text
	}
	return settings, errors.Join(faults...)
}

// readMapping returns the mapping in a file, nil if the file is empty.
func readMapping(path string, data []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, unreadable(path, err)
	}
	var root, another yaml.Node
	if err := loader.Load(&root); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // an empty file has no settings
	} else if err != nil {
		return nil, unreadable(path, err)
	}
	if err := loader.Load(&another); err == nil {
		return nil, fmt.Errorf("%s:%d: a second document begins here: join the two", path, another.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, unreadable(path, err)
	}
	mapping := root.Content[0]
	if mapping.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: must be a mapping of settings, such as \"app: shop\"", path, mapping.Line)
	}
	return mapping, nil
}

func unreadable(path string, err error) error {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		return fmt.Errorf("%s:%d: cannot be read as YAML: does a value need quotes?", path, max(1, load.Mark.Line))
	}
	return fmt.Errorf("%s: cannot be read as YAML", path)
}

// readSetting returns the value of a setting, or its mistake.
func readSetting(earlier map[string]string, name string, content *yaml.Node) (text, fault string) {
	var known []string
	for _, o := range options() {
		known = append(known, o.name)
	}
	_, twice := earlier[name]
	switch {
	case !slices.Contains(known, name):
		return "", fmt.Sprintf("unknown setting %q: there are %s", name, strings.Join(known, ", "))
	case twice:
		return "", fmt.Sprintf("%q is set twice: remove one", name)
	case content.Kind == yaml.SequenceNode && name == "endpoints":
		var items []string
		for _, item := range content.Content {
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), ""
	case content.Kind != yaml.ScalarNode || content.Value == "":
		return "", fmt.Sprintf("%q must be a text, or be left out", name)
	default:
		return content.Value, ""
	}
}

// hasPassword reports whether the file contains a password.
func (f file) hasPassword() bool {
	return f.values["password"] != "" || strings.Contains(f.values["user"], ":")
}

// fileWarning returns a warning if others may read the file, which contains a password;
// otherwise "".
func fileWarning(path string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds a password and may be read by others: run chmod 600 %s", path, path)
}
