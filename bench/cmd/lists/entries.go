package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"

	"github.com/penstock-go/penstock/access"
)

// kindOfEntries is the entries of a list, made at random but always the same.
type kindOfEntries struct {
	name, about string
	attribute   string // of calls
	entry       func(*rand.Rand) string
	found       func(*rand.Rand, string) string // a value that the entry stands for
	other       func(*rand.Rand) string         // a value that probably no entry stands for
}

func entries() []kindOfEntries {
	return []kindOfEntries{
		{"ipv4", "IPv4 prefixes, of 22 to 32 bits, three in four of 32", access.IP, prefix4, within, address4},
		{"ipv6", "IPv6 prefixes, of 40 to 128 bits, most of them 48, 64 or 128, in 50,000 networks of 32 bits", access.IP, prefix6, within, address6},
		{"ipv6-hosts", "IPv6 addresses, in 50,000 networks of 32 bits", access.IP, host6, within, address6},
		{"texts", "texts of 12 to 36 bytes", "user", text, same, text},
	}
}

func kindOf(name string) (kindOfEntries, error) {
	for _, k := range entries() {
		if k.name == name {
			return k, nil
		}
	}
	return kindOfEntries{}, fmt.Errorf("there are no entries %q", name)
}

// pick returns one of some lengths, by how many percent of the prefixes have each.
func pick(r *rand.Rand, lengths ...[2]int) int {
	at := r.IntN(100)
	for _, l := range lengths {
		if at -= l[1]; at < 0 {
			return l[0]
		}
	}
	return lengths[0][0]
}

func prefix4(r *rand.Rand) string {
	length := pick(r, [2]int{32, 75}, [2]int{24, 19}, [2]int{28, 3}, [2]int{26, 2}, [2]int{22, 1})
	return netip.PrefixFrom(randomAddr4(r), length).Masked().String()
}

func prefix6(r *rand.Rand) string {
	length := pick(r, [2]int{48, 40}, [2]int{64, 30}, [2]int{128, 20}, [2]int{56, 5}, [2]int{44, 4}, [2]int{40, 1})
	return netip.PrefixFrom(randomAddr6(r), length).Masked().String()
}

func host6(r *rand.Rand) string { return randomAddr6(r).String() }

func address4(r *rand.Rand) string { return randomAddr4(r).String() }

func address6(r *rand.Rand) string { return randomAddr6(r).String() }

func randomAddr4(r *rand.Rand) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], r.Uint32())
	return netip.AddrFrom4(b)
}

// randomAddr6 returns an address in one of 50,000 networks, which stand for those that
// are in use.
func randomAddr6(r *rand.Rand) netip.Addr {
	const golden = 0x9E3779B9
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	binary.BigEndian.PutUint32(b[:], 0x20000000|uint32(r.IntN(50_000))*golden>>3)
	return netip.AddrFrom16(b)
}

// within returns an address of a prefix.
func within(r *rand.Rand, entry string) string {
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		return entry
	}
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(b); bit++ {
		b[bit/8] |= byte(r.IntN(2)) << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr.String()
}

func text(r *rand.Rand) string {
	return fmt.Sprintf("%0*x", 12+r.IntN(25), r.Uint64())
}

func same(_ *rand.Rand, entry string) string { return entry }

// writeTo writes the entries, one a line.
func (k kindOfEntries) writeTo(w io.Writer, count int) error {
	r, lines := random(1), bufio.NewWriterSize(w, 1<<16)
	for range count {
		_, _ = lines.WriteString(k.entry(r))
		_ = lines.WriteByte('\n')
	}
	return lines.Flush()
}

// random returns a source of numbers that are the same in every run.
func random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // repeatable on purpose
}
