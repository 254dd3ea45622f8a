package lists

// Option changes the configuration of a watch that a source starts.
type Option func(*Config)

// KeepCopies keeps a copy of every list that is in force in the directory, which is made if
// only its parent exists, so that a service can start while the source is down. The
// application is that of the service: copies of another one are ignored. See the package
// comment.
func KeepCopies(directory, app string) Option {
	return func(c *Config) { c.Copies, c.App = directory, app }
}

// With returns the configuration as the options change it.
func (c Config) With(opts ...Option) Config {
	for _, change := range opts {
		change(&c)
	}
	return c
}
