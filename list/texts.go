package list

import (
	"context"
	"encoding/binary"
	"hash/maphash"
)

// texts is a set of texts. They stand one after the other in a few large pieces of
// memory, each after its length; a hash table has the places.
type texts struct {
	seed   maphash.Seed
	pieces [][]byte
	filter filter
	slots  []uint64 // 0 if unused; otherwise 32 bits of the hash, then 1 more than the place
}

const (
	placeBits  = 32
	pieceBits  = 20 // of a place within its piece
	lengthSize = 2  // bytes of a length
	maxPieces  = 1 << (placeBits - pieceBits)
)

func (t *texts) contains(text string) bool {
	if len(text) > maxText || len(t.slots) == 0 {
		return false
	}
	hash := maphash.String(t.seed, text)
	if !t.filter.mayHave(hash) {
		return false
	}
	for at := homeOf(hash, len(t.slots)); ; at++ {
		if at == len(t.slots) {
			at = 0
		}
		slot := t.slots[at]
		if slot == 0 {
			return false
		}
		if slot>>placeBits == tagOf(hash) && string(t.at(slot)) == text {
			return true
		}
	}
}

// tagOf returns bits of the hash that the home of a text does not follow from.
func tagOf(hash uint64) uint64 { return hash & (1<<placeBits - 1) }

// at returns the text that a slot refers to.
func (t *texts) at(slot uint64) []byte {
	place := uint32(slot) - 1
	piece := t.pieces[place>>pieceBits][place&(1<<pieceBits-1):]
	return piece[lengthSize : lengthSize+int(binary.LittleEndian.Uint16(piece))]
}

func (t *texts) size() int64 {
	bytes := t.filter.size() + int64(len(t.slots))*8
	for _, p := range t.pieces {
		bytes += int64(cap(p))
	}
	return bytes
}

// add adds a text of at most MaxText bytes. It returns false if there is no space left.
func (t *texts) add(text []byte) bool {
	last := len(t.pieces) - 1
	if last < 0 || len(t.pieces[last])+lengthSize+len(text) > 1<<pieceBits {
		if len(t.pieces) == maxPieces {
			return false
		}
		var piece []byte // the first one grows as need be
		if last >= 0 {
			piece = make([]byte, 0, 1<<pieceBits)
		}
		t.pieces = append(t.pieces, piece)
		last++
	}
	p := binary.LittleEndian.AppendUint16(t.pieces[last], uint16(len(text)))
	t.pieces[last] = append(p, text...)
	return true
}

// index makes the hash table for so many texts, some of which may be the same.
func (t *texts) index(ctx context.Context, count int) error {
	if count == 0 {
		return nil
	}
	t.seed = maphash.MakeSeed()
	t.filter = newFilter(count)
	t.slots = make([]uint64, slotsFor(count))
	done := 0
	for i, piece := range t.pieces {
		for at := 0; at < len(piece); done++ {
			if done%checkEvery == 0 {
				if err := context.Cause(ctx); err != nil {
					return err
				}
			}
			at += t.put(uint32(i<<pieceBits|at)+1, piece[at:])
		}
	}
	return nil
}

// put puts the text at the start of a piece in the hash table, unless it is there, and
// returns how many bytes it takes.
func (t *texts) put(place uint32, piece []byte) int {
	length := int(binary.LittleEndian.Uint16(piece))
	text := piece[lengthSize : lengthSize+length]
	hash := maphash.Bytes(t.seed, text)
	t.filter.add(hash)
	slot := tagOf(hash)<<placeBits | uint64(place)
	for at := homeOf(hash, len(t.slots)); ; at++ {
		if at == len(t.slots) {
			at = 0
		}
		present := t.slots[at]
		if present == 0 {
			t.slots[at] = slot
			break
		}
		if present>>placeBits == tagOf(hash) && string(t.at(present)) == string(text) {
			break
		}
	}
	return lengthSize + length
}
