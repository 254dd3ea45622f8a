package list

// pieces is a sequence that grows without being copied.
type pieces[T any] struct {
	full [][]T
	last []T
	size int
}

const pieceLength = 1 << 16

func (p *pieces[T]) add(value T) {
	if len(p.last) == pieceLength {
		p.full = append(p.full, p.last)
		p.last = make([]T, 0, pieceLength)
	}
	p.last = append(p.last, value)
	p.size++
}

// join returns all of the sequence in one piece, and leaves it empty.
func (p *pieces[T]) join() []T {
	if len(p.full) == 0 {
		whole := p.last
		*p = pieces[T]{}
		return whole
	}
	whole := make([]T, 0, p.size)
	for i, piece := range p.full {
		whole = append(whole, piece...)
		p.full[i] = nil
	}
	whole = append(whole, p.last...)
	*p = pieces[T]{}
	return whole
}
