//go:build unix

package redistest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Do sends a command on a connection of its own and returns the answer: a string, an int64,
// a []any or nil. The test fails if the server refuses the command.
func (s *Server) Do(command ...string) any {
	s.t.Helper()
	reply, err := s.Try(command...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %v", command[0], err)
	}
	return reply
}

// Try is Do, but returns an error where Do ends the test: for conditions that are tried again, and servers that may
// just be loading their data, or ending their connections.
func (s *Server) Try(command ...string) (any, error) {
	var conn net.Conn
	var err error
	dialer := &net.Dialer{Timeout: patience}
	if s.tls != nil {
		conn, err = tls.DialWithDialer(dialer, "tcp", s.address, s.tls)
	} else {
		conn, err = dialer.Dial("tcp", s.address)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	if s.options.Password != "" {
		if _, err := roundTrip(conn, reader, "AUTH", s.options.Password); err != nil {
			return nil, err
		}
	}
	return roundTrip(conn, reader, command...)
}

func roundTrip(conn net.Conn, reader *bufio.Reader, command ...string) (any, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return nil, err
	}
	return read(reader)
}

// read reads an answer of version 2 of the protocol.
func read(reader *bufio.Reader) (any, error) {
	line, err := reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil || kind == ':':
		return n, err
	case n < 0:
		return nil, nil //nolint:nilnil // there is no value
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(reader, text)
		return string(text[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = read(reader); err != nil {
			return nil, err
		}
	}
	return all, nil
}
