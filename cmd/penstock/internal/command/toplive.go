package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// Terminal is what a command can do with a terminal that it reads keys from.
type Terminal interface {
	// Raw has the terminal deliver each key at once and unseen, until restore is called.
	Raw() (restore func(), err error)

	// Size returns how many columns and lines the terminal has at present; 0 if that is not known.
	Size() (columns, lines int)
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, no wrapping of lines
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	homeCursor  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"

	ctrlC = 3
)

// topKeys are the keys that sort.
func topKeys() map[byte]inspect.ResourceSort {
	return map[byte]inspect.ResourceSort{
		'r': inspect.SortRefused, 'p': inspect.SortPassed, 'n': inspect.SortName, '9': inspect.SortP99, 'f': inspect.SortInFlight,
	}
}

// topLive shows what the services say, again and again, until somebody ends it. The terminal is as it was
// when it returns.
func (env Env) topLive(ctx context.Context, t topOptions) error {
	restore, err := env.Terminal.Raw()
	if err != nil {
		return failure{ExitFailed, fmt.Errorf("the terminal does not deliver keys: %w; --once needs none", err)}
	}
	defer restore()
	fmt.Fprint(env.Out, enterScreen)
	defer fmt.Fprint(env.Out, leaveScreen)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := readKeys(ctx, env.In)
	answers := make(chan topAnswer)
	asked := t
	ask := func() {
		question := asked
		go func() {
			answer := question.ask(ctx)
			select {
			case answers <- answer:
			case <-ctx.Done():
			}
		}()
	}
	ask()
	next := time.NewTimer(topInterval)
	defer next.Stop()
	due, asking := false, true
	var shown topAnswer
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case shown = <-answers:
			asking = false
			env.draw(&shown, t.query.Sort)
		case key, ok := <-keys:
			if !ok || key == 'q' || key == ctrlC {
				return nil
			}
			if by, known := topKeys()[key]; known {
				t.query.Sort, asked.query.Sort = by, by
				sortResources(shown.Resources, by)
				env.draw(&shown, by)
			}
		case <-next.C:
			due = true
			next.Reset(topInterval)
		}
		if due && !asking {
			due, asking = false, true
			ask()
		}
	}
}

// readKeys returns a channel of the keys that are read, which is closed at the end of the input. The
// goroutine that reads ends with the input, or with ctx and the next key.
func readKeys(ctx context.Context, in io.Reader) <-chan byte {
	keys := make(chan byte)
	go func() {
		defer close(keys)
		var key [1]byte
		for {
			if n, err := in.Read(key[:]); n == 0 || err != nil {
				return
			}
			select {
			case keys <- key[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys
}

// draw shows the table in one write, over the one before, so that nothing flickers.
func (env Env) draw(a *topAnswer, by inspect.ResourceSort) {
	columns, rows := env.Terminal.Size()
	lines := topLines(a, by, columns, env.painter())
	lines = append(lines[:1:1], append([]string{cutTo("r p n 9 f: sort by refused, passed, name, p99, in flight   q: quit", columns)}, lines[1:]...)...)
	if rows > 0 && len(lines) > rows {
		lines = lines[:rows]
	}
	_, _ = io.WriteString(env.Out, homeCursor+strings.Join(lines, clearLine+"\r\n")+clearLine+clearBelow)
}
