package adaptertest

// The names of all tests of the suites.
func HTTPTests() []string  { return names(httpTests()) }
func RPCTests() []string   { return names(rpcTests()) }
func CallsTests() []string { return names(callsTests()) }

func names[H any](tests []conformanceTest[H]) (list []string) {
	for _, test := range tests {
		list = append(list, test.name)
	}
	return list
}
