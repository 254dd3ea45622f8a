package lastgood

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

const (
	// maxSlowdown is how many times the interval the pause grows to before what
	// could not be saved, or may change unseen, is looked at again.
	maxSlowdown = 32

	// lookInterval is how often it is made sure that the copy is still there.
	lookInterval = 10 * time.Second

	// maxAge is how far the time in a copy falls behind while the source can be
	// read and does not change.
	maxAge = time.Hour
)

// saver saves what is in force in one run. It belongs to one goroutine.
type saver struct {
	*run
	saved     *contents // nil before the first save
	gone      bool      // somebody has removed the copy
	complaint string    // what was logged and still holds, "" if nothing is wrong
}

// work saves what changes until the source has returned, and then once more.
func (s *saver) work() {
	removeUnfinished(s.opts.Path)
	timer, look := s.opts.Clock.NewTimer(maxAge), s.opts.Clock.NewTimer(lookInterval)
	defer timer.Stop()
	defer look.Stop()
	pause, soon := s.opts.Interval, false
	for {
		select {
		case <-look.C():
			look.Reset(lookInterval)
			if s.miss() && !soon {
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

// save saves what is in force if that has changed, or if what was saved is older
// than that by the given age. It returns whether there is nothing more to do
// until the next change.
func (s *saver) save(age time.Duration) (done bool) {
	now, unsettled, err := s.present(s.gone)
	if err == nil && now != nil && (s.gone || !now.same(s.saved) || now.at.Sub(s.saved.at) >= age) {
		if err = s.write(now); err == nil {
			s.saved, s.gone = now, false
		}
	}
	s.complain(err)
	return err == nil && !unsettled
}

// miss looks whether the copy is still there, if it was, and tells whether it has
// just been found missing.
func (s *saver) miss() bool {
	if _, err := os.Lstat(s.opts.Path); s.gone || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.gone = s.saved != nil || s.engine.Status().CopiedAt != 0
	if s.gone {
		s.opts.Logger.Warn("penstock: the last good copy of the source was removed and is written again",
			slog.String("source", s.Name()), slog.String("path", s.opts.Path))
	}
	return s.gone
}

func (s *saver) write(now *contents) error {
	data, err := encode(now)
	if err != nil {
		return err
	}
	return replace(s.opts.Path, data)
}

// complain logs why the copy cannot be saved, once, and that it can be again.
func (s *saver) complain(err error) {
	var complaint string
	if err != nil {
		complaint = err.Error()
	}
	switch {
	case complaint == s.complaint:
	case err != nil:
		s.opts.Logger.Warn("penstock: the last good copy of the source cannot be saved, its rules are not affected",
			slog.String("source", s.Name()), slog.Any("error", err))
	default:
		s.opts.Logger.Info("penstock: the last good copy of the source is saved again", slog.String("source", s.Name()))
	}
	s.complaint = complaint
}
