package fleet

import "errors"

// ErrUnavailable says that a backend did not answer in time or cannot be reached.
var ErrUnavailable = errors.New("fleet: the backend does not answer")

// ErrUnsupported says that a backend cannot do what a limit needs, such as to count.
var ErrUnsupported = errors.New("fleet: the backend does not support this")

// ErrNameTaken says that an instance with the name that was announced is alive already, or ended
// less than [AnnounceLife] ago without leaving.
var ErrNameTaken = errors.New("fleet: another instance has this name, or one that ended less than 5 s ago: give each instance a name of its own")
