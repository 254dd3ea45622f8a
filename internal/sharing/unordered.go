package sharing

import "slices"

// unordered is what stands in a list whose order does not matter, and knows where: -1 in none.
type unordered interface{ placeInList() *int }

func (b *Budget) placeInList() *int { return &b.place }
func (a *Asker) placeInList() *int  { return &a.place }
func (g *Group) placeInList() *int  { return &g.place }
func (p *Places) placeInList() *int { return &p.place }

func (p *ValuePlaces) placeInList() *int { return &p.place }

// removeFrom removes one from its list. The last one takes its place.
func removeFrom[T unordered](list *[]T, one T) {
	at, last := one.placeInList(), len(*list)-1
	moved := (*list)[last]
	(*list)[*at], *moved.placeInList() = moved, *at
	*list = slices.Delete(*list, last, last+1)
	*at = -1
}
