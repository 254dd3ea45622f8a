package penstocksql

import "strings"

// isRelease says whether a statement is nothing but one that gives back what its connection
// holds, such as COMMIT. Refusing it would make what is overloaded wait for longer.
func isRelease(query string) bool {
	if query == "" || !strings.ContainsRune(" \t\r\nCREAUDcreaud", rune(query[0])) {
		return false // most are not
	}
	query = strings.Trim(query, " \t\r\n;")
	word := query
	if end := strings.IndexAny(query, " \t\r\n;"); end >= 0 {
		word = query[:end]
	}
	if len(word) > len("DEALLOCATE") || strings.Contains(query, ";") {
		return false
	}
	for _, release := range [...]string{
		"COMMIT", "ROLLBACK", "END", "ABORT", "RELEASE", "UNLOCK", "CLOSE", "DEALLOCATE",
	} {
		if strings.EqualFold(word, release) {
			return true
		}
	}
	return false
}
