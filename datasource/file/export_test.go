package file

import "io/fs"

// Changed exports changed for tests.
func Changed(info fs.FileInfo) int64 { return changeTime(info) }
