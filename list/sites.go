package list

import (
	"context"
	"math/bits"
	"reflect"
)

// sites has very many IPv6 prefixes of 48 to 64 bits: those of sites, and of their subnets. A look-up
// reads one group of places, which lies in a cache line, for the prefixes of all these lengths.
//
// The first 48 bits of a prefix are scrambled, and that number is multiplied by how many groups there
// are. The upper bits of the product are the group and the lower ones stand in the word, so that both
// together tell the 48 bits. As the lowest two are 0, that is 46 bits of the word. Behind them it has
// the next 16 bits of the prefix, as many as there are, and a 1. All are inverted: 0 is a place that
// is not used. One prefix of thirty finds its group full, and stays in the table of its level.
type sites struct {
	seeds  seeds
	groups [][4]uint64 // a multiple of 4
}

const (
	siteBits    = 48
	subnetBits  = levelBits + 1 // of a word: what it has behind the site
	siteLevel   = 2             // whose prefixes of 48 bits are those of sites
	subnetLevel = 3

	maxSubnets = 4 // of a site; more of them take less memory in the table
)

// takeSites takes what it can of the sorted ranges of the levels, if that is very much.
func takeSites(ctx context.Context, levels *[narrowLevels][]slot[uint64], seeds seeds) (*sites, error) {
	count := 0
	for _, level := range []int{siteLevel, subnetLevel} {
		for group := range groups(levels[level]) {
			for _, r := range group {
				if _, _, ok := prefixOf(level, len(group), r); ok {
					count++
				}
			}
		}
	}
	if count < veryMany {
		return nil, nil
	}
	s := &sites{seeds, make([][4]uint64, count/perGroup/4*4)}
	for _, level := range []int{siteLevel, subnetLevel} {
		others, err := take(ctx, levels[level], func(ofKey int, r slot[uint64]) bool {
			first, free, ok := prefixOf(level, ofKey, r)
			return ok && s.add(first, free)
		})
		if err != nil {
			return nil, err
		}
		levels[level] = others
	}
	return s, nil
}

// prefixOf returns the prefix that a range of a level is, one of so many of its key: the first 64
// bits, of which some are free. It returns false if it is none that sites have.
func prefixOf(level, ofKey int, r slot[uint64]) (first uint64, free int, ok bool) {
	first = r.key<<levelBits | uint64(r.first)
	if level == siteLevel {
		return first << levelBits, levelBits, ofKey < many && r.first == r.last
	}
	free = bits.Len16(r.last - r.first)
	return first, free, ofKey <= maxSubnets && r.last-r.first == 1<<free-1 && r.first>>free<<free == r.first
}

// add adds a prefix, of 64 bits of which some are free. It returns false if there is no place for it.
func (s *sites) add(first uint64, free int) bool {
	group, word := s.placeOf(first)
	for i, place := range s.groups[group] {
		if place == 0 {
			s.groups[group][i] = ^((word>>free | 1) << free)
			return true
		}
	}
	return false
}

// has says whether there is a prefix that an address with these first bits begins with.
func (s *sites) has(high uint64) bool {
	at, word := s.placeOf(high)
	g, inverted := &s.groups[at], ^word
	return misses(g[0], inverted)&misses(g[1], inverted)&misses(g[2], inverted)&misses(g[3], inverted) == 0
}

// misses returns 0 if a place has a prefix of the bits, else 1: they have to be the same up to the
// lowest 0 of the place. It does not branch, as the processor could not predict which place it is.
func misses(place, inverted uint64) uint64 {
	_, differs := bits.Sub64(place^(place+1), place^inverted, 0)
	return differs
}

// placeOf returns the group of an address, and what a word has of its first 64 bits.
func (s *sites) placeOf(high uint64) (group, word uint64) {
	const mask = 1<<siteBits - 1
	scrambled := high >> levelBits * s.seeds.b & mask // of odd factors each can be undone
	scrambled = (scrambled ^ scrambled>>(siteBits/2)) * (s.seeds.a | 1) & mask
	group, below := bits.Mul64(scrambled<<levelBits, uint64(len(s.groups)))
	return group, below>>(levelBits+2)<<subnetBits | uint64(uint16(high))<<1
}

func (s *sites) size() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.groups)) * int64(reflect.TypeFor[[4]uint64]().Size())
}
