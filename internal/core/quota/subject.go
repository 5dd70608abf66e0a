package quota

import (
	"encoding/binary"
	"net/netip"
)

// Subject is who is counted: an account, an IPv4 address, or the first half of
// an IPv6 address, which is one household or machine. It is the number itself,
// no hash of it: nobody is ever counted for somebody else.
type Subject uint64

// The first halves of real IPv6 addresses are above all of these.
const (
	addressesV4 Subject = 1 << 32
	accounts    Subject = 2 << 32
	endOfOurs   Subject = 3 << 32
)

// Account is an account's subject.
func Account(id int) Subject { return accounts | Subject(uint32(id)) }

// Address is that of a caller without a key.
func Address(address netip.Addr) Subject {
	address = address.Unmap()
	if address.Is4() {
		bytes := address.As4()
		return addressesV4 | Subject(binary.BigEndian.Uint32(bytes[:]))
	}
	bytes := address.As16()
	return Subject(binary.BigEndian.Uint64(bytes[:8]))
}

// refunds is the subject under which the executed 304s of a subject are counted.
// It lies in a part of the IPv6 space that is not assigned to anybody.
func (s Subject) refunds() Subject { return s ^ 1<<62 }

// account is the account's id, or false for an address.
func (s Subject) account() (int, bool) {
	return int(uint32(s)), s >= accounts && s < endOfOurs
}
