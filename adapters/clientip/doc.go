// Package clientip finds the address of the client of a request that may have come
// through proxies. Adapters use it; services set its [Options] as the option Clients of
// their adapter.
//
// The peer of a connection is the client, unless it is a trusted proxy: then the
// header field that the proxy writes says for whom it made the request, which may be
// another proxy. [Resolver.Client] walks the field from the right, where the nearest
// proxy has written, through trusted proxies only, and returns the first address that
// is not one of theirs. What stands to the left of that address was written by the
// client and is never looked at. So clients cannot choose their address, whatever
// header fields they send.
//
// Addresses have no zone and no port, and an IPv4-mapped IPv6 address is the IPv4
// address. Texts of addresses are canonical: those of [netip.Addr], with IPv6 as in
// RFC 5952.
package clientip
