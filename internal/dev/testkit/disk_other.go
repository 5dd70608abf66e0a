//go:build !linux

package testkit

import (
	"errors"
	"testing"
)

// MountSmallDisk is supported only on Linux.
func MountSmallDisk(testing.TB, int) (string, error) {
	return "", errors.New("supported only on Linux")
}

// ReadOnly is supported only on Linux.
func ReadOnly(testing.TB, string) {}
