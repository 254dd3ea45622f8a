package httpsource

import "encoding/hex"

// ParseIndex returns the names and the digests in an index.
func ParseIndex(data []byte) (names, digests []string, err error) {
	entries, err := parseIndex(data)
	for _, e := range entries {
		names, digests = append(names, e.name), append(digests, hex.EncodeToString(e.digest))
	}
	return names, digests, err
}
