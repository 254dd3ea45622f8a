// Package penstockconnect guards the calls of Connect.
package penstockconnect
