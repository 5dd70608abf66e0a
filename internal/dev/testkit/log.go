package testkit

import (
	"bytes"
	"sync"
)

// Log is what was logged, by many at once.
type Log struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write takes a line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// String is all of it so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}
