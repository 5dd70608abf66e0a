//go:build !linux

package testkit

import "errors"

// MountSmallDisk is for Linux alone.
func MountSmallDisk(int) (string, func(), error) {
	return "", nil, errors.New("a small disk can only be mounted on Linux")
}
