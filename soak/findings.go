package main

import (
	"fmt"
	"io"
	"sync"
)

// maxPrinted is how many findings are printed.
const maxPrinted = 20

// findings collects findings.
type findings struct {
	out   io.Writer
	mu    sync.Mutex
	count int
}

func (w *findings) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count++; w.count <= maxPrinted {
		fmt.Fprintf(w.out, "WRONG: "+format+"\n", args...)
	}
}

func (w *findings) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *findings) err() error {
	if n := w.total(); n > 0 {
		return fmt.Errorf("%d findings are not what was promised", n)
	}
	return nil
}
