package lastgood

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// unfinished ends the names of files that are being written. They begin with a
// dot and the name of the copy.
const unfinished = ".unfinished"

// replace makes the file at path hold the data, in one step: whenever that is
// interrupted, it holds these or what it held before.
func replace(path string, data []byte) error {
	directory, name := filepath.Split(path)
	file, err := os.CreateTemp(directory, "."+name+".*"+unfinished) // nobody else may read it
	if err != nil {
		return failed(path, "creating a file beside it", err)
	}
	_, err = file.Write(data)
	err = failed(path, "writing", errors.Join(err, file.Sync(), file.Close()))
	if err == nil {
		err = failed(path, "renaming", os.Rename(file.Name(), path))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	return failed(path, "forcing its directory to the disk", syncDirectory(directory))
}

// failed returns the error of a step, nil if it has none. It tells nothing that
// would be different the next time.
func failed(path, step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lastgood: %s: %s: %w", path, step, cause(err))
}

// removeUnfinished removes what a process that was killed left of a save.
func removeUnfinished(path string) {
	directory, name := filepath.Split(path)
	entries, _ := os.ReadDir(directory) // what cannot be listed stays
	for _, entry := range entries {
		random, begins := strings.CutPrefix(entry.Name(), "."+name+".")
		random, ends := strings.CutSuffix(random, unfinished)
		if begins && ends && !strings.Contains(random, ".") { // else that of a copy with a longer name
			_ = os.Remove(filepath.Join(directory, entry.Name()))
		}
	}
}
