// Package attribute bounds the attributes of calls that clients choose. It is for
// adapters.
package attribute

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/penstock-go/penstock/rule"
)

// MaxLength is how many bytes of a text rules get to see.
const MaxLength = 1024

const (
	hashLength = 16      // bytes of the hash of a longer text that stand in for it
	maxHashed  = 8 << 10 // bytes of a longer text that are hashed
)

// Text returns an attribute with a text that a client may have chosen. Of a text that
// is longer than [MaxLength], it is the first MaxLength bytes, a "#", and 32 hexadecimal
// digits of a SHA-256 hash. So different texts stay different, and none becomes a text of
// at most MaxLength bytes. Only texts of one length whose first 8 KiB are the same become
// one: they share a limit.
func Text(text string) rule.Attribute {
	if len(text) <= MaxLength {
		return rule.String(text)
	}
	var hashed [maxHashed + 8]byte // on the stack
	binary.LittleEndian.PutUint64(hashed[:], uint64(len(text)))
	hash := sha256.Sum256(hashed[:8+copy(hashed[8:], text)])
	var bounded [MaxLength + 1 + 2*hashLength]byte
	copy(bounded[:], text[:MaxLength])
	bounded[MaxLength] = '#'
	hex.Encode(bounded[MaxLength+1:], hash[:hashLength])
	return rule.String(string(bounded[:]))
}
