package file

import "io/fs"

// Changed is changed, for tests from outside.
func Changed(info fs.FileInfo) int64 { return changed(info) }
