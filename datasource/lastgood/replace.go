package lastgood

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/datasource/internal/copyfile"
)

// replace replaces the content of the file at path atomically: whenever it is
// interrupted, the file has either the old content or the new one.
func replace(path string, data []byte) error {
	file, err := copyfile.Create(path)
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
	return stepError(path, "forcing its directory to the disk", copyfile.SyncDirectory(filepath.Dir(path)))
}

// stepError wraps the error of a step, if there is one. It leaves out details that
// differ at every attempt, so that repeated errors have the same text.
func stepError(path, step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lastgood: %s: %s: %w", path, step, copyfile.WithoutPath(err))
}
