package lastgood

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempSuffix is the suffix of temporary files. Their names begin with a dot and the
// name of the copy.
const tempSuffix = ".unfinished"

// replace replaces the content of the file at path atomically: whenever it is
// interrupted, the file has either the old content or the new one.
func replace(path string, data []byte) error {
	directory, name := filepath.Split(path)
	file, err := os.CreateTemp(directory, "."+name+".*"+tempSuffix) // readable to its owner only
	if err != nil {
		return stepError(path, "creating a file beside it", err)
	}
	_, err = file.Write(data)
	err = stepError(path, "writing", errors.Join(err, file.Sync(), file.Close()))
	if err == nil {
		err = stepError(path, "renaming", os.Rename(file.Name(), path))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	return stepError(path, "forcing its directory to the disk", syncDirectory(directory))
}

// stepError wraps the error of a step, if there is one. It leaves out details that
// differ at every attempt, so that repeated errors have the same text.
func stepError(path, step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lastgood: %s: %s: %w", path, step, withoutPath(err))
}

// removeTempFiles removes the temporary files of a process that was killed.
func removeTempFiles(path string) {
	directory, name := filepath.Split(path)
	entries, _ := os.ReadDir(directory) // on an error the files stay
	for _, entry := range entries {
		random, begins := strings.CutPrefix(entry.Name(), "."+name+".")
		random, ends := strings.CutSuffix(random, tempSuffix)
		if begins && ends && !strings.Contains(random, ".") { // otherwise it belongs to a copy with a longer name
			_ = os.Remove(filepath.Join(directory, entry.Name()))
		}
	}
}
