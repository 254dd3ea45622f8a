// Package rpc has what the adapters for RPC frameworks have in common: how calls enter and how
// their ends are told to the rules ([Gate]), the codes that refused calls are answered with,
// what is made of refusals and kept ([Refusals]), which codes blame the server, and what the
// end of a call means to its caller. It is for adapters.
package rpc
