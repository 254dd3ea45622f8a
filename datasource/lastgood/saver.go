package lastgood

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/datasource/internal/copyfile"
)

const (
	// maxSlowdown limits the pause before another attempt, as a multiple of the
	// interval, after a failed save or while the documents in force may change
	// without notice.
	maxSlowdown = 32

	// lookInterval is how often the saver checks that the copy still exists.
	checkInterval = 10 * time.Second

	// maxAge is how old the time in a copy may get while the source can be read and
	// does not change.
	maxAge = time.Hour
)

// saver saves the documents in force during one run. Only one goroutine uses it.
type saver struct {
	*run
	saved     *contents // nil before the first save
	missing   bool      // somebody has removed the copy
	loggedErr string    // the error as logged last; "" if the last save succeeded
}

// loop saves changes until the source has returned, and then once more.
func (s *saver) loop() {
	copyfile.RemoveTemp(s.opts.Path)
	timer, look := s.opts.Clock.NewTimer(maxAge), s.opts.Clock.NewTimer(checkInterval)
	defer timer.Stop()
	defer look.Stop()
	pause, soon := s.opts.Interval, false
	for {
		select {
		case <-look.C():
			look.Reset(checkInterval)
			if s.checkMissing() && !soon {
				timer.Reset(s.opts.Interval)
				soon = true
			}
		case <-s.ended:
			s.save(1)
			return
		case <-s.changed:
			if !soon {
				timer.Reset(s.opts.Interval)
				soon = true
			}
		case <-timer.C():
			soon = false
			if s.save(maxAge) {
				pause = s.opts.Interval
				timer.Reset(maxAge)
				continue
			}
			pause = min(2*pause, maxSlowdown*s.opts.Interval)
			timer.Reset(pause)
		}
	}
}

// save saves the documents in force if they have changed, if the copy is missing, or
// if the time in it is another one by at least age: it is older, or the wall clock was set
// back. It returns whether there is nothing more to do until the next change.
func (s *saver) save(age time.Duration) (done bool) {
	now, differs, err := s.inForce(s.missing)
	if err == nil && now != nil && (s.missing || !now.same(s.saved) || now.at.Sub(s.saved.at).Abs() >= age) {
		if err = s.write(now); err == nil {
			s.saved, s.missing = now, false
		}
	}
	s.logError(err)
	return err == nil && !differs
}

// checkMissing checks whether the copy still exists. It returns whether it has just
// disappeared.
func (s *saver) checkMissing() bool {
	if _, err := os.Lstat(s.opts.Path); s.missing || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.missing = s.saved != nil || s.engine.Status().CopiedAt != 0
	if s.missing {
		s.opts.Logger.Warn("penstock: the last good copy of the source was removed and is written again",
			slog.String("source", s.Name()), slog.String("path", s.opts.Path))
	}
	return s.missing
}

func (s *saver) write(now *contents) error {
	data, err := encode(now)
	if err != nil {
		return err
	}
	return replace(s.opts.Path, data)
}

// logError logs an error of a save once, and later that saves succeed again.
func (s *saver) logError(err error) {
	var text string
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == s.loggedErr:
	case err != nil:
		s.opts.Logger.Warn("penstock: the last good copy of the source cannot be saved, its rules are not affected",
			slog.String("source", s.Name()), slog.Any("error", err))
	default:
		s.opts.Logger.Info("penstock: the last good copy of the source is saved again", slog.String("source", s.Name()))
	}
	s.loggedErr = text
}
