package lastgood

import (
	"log/slog"
	"time"
)

const (
	// maxSlowdown is how many times the interval the pause grows to before what
	// could not be saved, or may change unseen, is looked at again.
	maxSlowdown = 32

	// maxAge is how far the time in a copy falls behind while the source can be
	// read and does not change.
	maxAge = time.Hour
)

// saver saves what is in force in one run. It belongs to one goroutine.
type saver struct {
	*run
	saved     *contents // nil before the first save
	complaint string    // what was logged and still holds, "" if nothing is wrong
}

// work saves what changes until the source has returned, and then once more.
func (s *saver) work() {
	removeUnfinished(s.opts.Path)
	timer := s.opts.Clock.NewTimer(maxAge)
	defer timer.Stop()
	pause, soon := s.opts.Interval, false
	for {
		select {
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
	now, unsettled, err := s.present()
	if err == nil && now != nil && (!now.same(s.saved) || now.at.Sub(s.saved.at) >= age) {
		if err = s.write(now); err == nil {
			s.saved = now
		}
	}
	s.complain(err)
	return err == nil && !unsettled
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
