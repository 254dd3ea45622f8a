//go:build !race

package penstockredis_test

const raceEnabled = false
