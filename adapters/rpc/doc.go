// Package rpc has what the adapters for RPC frameworks have in common: the codes that
// refused calls are answered with, which codes blame the server, and what the end of a call
// means to its caller. It is for adapters.
package rpc
