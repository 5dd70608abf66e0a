package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holds tells whether a process has the connection that comes from an address
// on loopback, as Linux keeps it.
func holds(pid int, peer string) bool {
	_, text, err := net.SplitHostPort(peer)
	if err != nil {
		return false
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return false
	}
	connections, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return false
	}
	socket := ""
	for line := range strings.Lines(string(connections)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			socket = "socket:[" + fields[9] + "]"
		}
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == socket {
			return true
		}
	}
	return false
}
