package main

import (
	"fmt"
	"io"
	"sync"
)

// told is how many findings are printed in words.
const told = 20

// wrong is what was found to be wrong.
type wrong struct {
	out   io.Writer
	mu    sync.Mutex
	count int
}

func (w *wrong) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count++; w.count <= told {
		fmt.Fprintf(w.out, "WRONG: "+format+"\n", args...)
	}
}

func (w *wrong) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *wrong) err() error {
	if n := w.total(); n > 0 {
		return fmt.Errorf("%d findings are not what was promised", n)
	}
	return nil
}
