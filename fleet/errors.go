package fleet

import "errors"

// ErrUnavailable says that a backend did not answer in time or cannot be reached.
var ErrUnavailable = errors.New("fleet: the backend does not answer")

// ErrUnsupported says that a backend cannot do what a limit needs, such as to count.
var ErrUnsupported = errors.New("fleet: the backend does not support this")

// ErrNameTaken says that an instance with the name that was announced is alive already, or ended
// less than [AnnounceLife] ago without leaving.
var ErrNameTaken = errors.New("fleet: another instance has this name, or one that ended less than 5 s ago: give each instance a name of its own")

// ErrReply says that a backend gave an answer that cannot be: more tokens than were asked
// for, or times in the past.
var ErrReply = errors.New("fleet: the backend does not count right")
