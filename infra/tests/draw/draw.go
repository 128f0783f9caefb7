// Package draw implements docs/DRAW.md a third time, from its text alone: no code is shared with the Rust and TypeScript
// implementations. It needs only the standard library.
package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

const maxNumbers = 1 << 48

// Hash is 32 bytes; hexadecimal text in JSON.
type Hash [32]byte

// UnmarshalText reads 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Record is the JSON of GET …/draw.
type Record struct {
	ItemID          string  `json:"itemId"`
	Version         int     `json:"version"`
	State           string  `json:"state"`
	Commitment      Hash    `json:"commitment"`
	Reveal          *Hash   `json:"reveal"`
	CohortFirst     *uint64 `json:"cohortFirst"`
	CohortSize      *uint64 `json:"cohortSize"`
	CohortRoot      *Hash   `json:"cohortRoot"`
	Beacon          *Hash   `json:"beacon"`
	Seed            *Hash   `json:"seed"`
	BeaconRound     *uint64 `json:"beaconRound"`
	BeaconSignature string  `json:"beaconSignature"`
	Ticket          *Ticket `json:"ticket"`
}

// Ticket is one ticket of the cohort, with the proof that the draw included its token.
type Ticket struct {
	Number uint64 `json:"number"`
	Leaf   Hash   `json:"leaf"`
	Index  uint64 `json:"index"`
	Path   []Hash `json:"path"`
	Rank   uint64 `json:"rank"`
}

// Check is the result of one check.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// CheckRecord returns the checks of a record in order; token may be empty.
func CheckRecord(record Record, token string) []Check {
	var checks []Check
	add := func(name string, ok bool) { checks = append(checks, Check{name, ok}) }
	add("version", record.Version == 1)
	if record.Version != 1 {
		return checks
	}
	if record.State == "COMMITTED" {
		add("fields", record.Reveal == nil && record.CohortFirst == nil && record.CohortSize == nil && record.CohortRoot == nil &&
			record.Beacon == nil && record.Seed == nil && record.Ticket == nil)
		return checks
	}
	if record.Reveal == nil || record.CohortFirst == nil || record.CohortSize == nil || record.CohortRoot == nil || record.Seed == nil ||
		*record.CohortSize > maxNumbers || *record.CohortFirst > maxNumbers-*record.CohortSize {
		add("fields", false)
		return checks
	}
	add("fields", true)
	first, size := *record.CohortFirst, *record.CohortSize
	contains := func(number uint64) bool { return first <= number && number < first+size }

	add("commitment", Commitment(*record.Reveal) == record.Commitment)
	add("beacon", checkBeacon(record))
	add("seed", Seed(record.ItemID, *record.Reveal, *record.CohortRoot, record.Beacon) == *record.Seed)
	if ticket := record.Ticket; ticket != nil {
		add("number", contains(ticket.Number) && ticket.Number-first == ticket.Index)
		add("rank", contains(ticket.Number) && Rank(*record.Seed, size, ticket.Number-first)+1 == ticket.Rank)
		add("path", VerifyPath(ticket.Leaf, ticket.Index, size, ticket.Path, *record.CohortRoot))
	}
	if token != "" {
		number, lane, ok := tokenFields(token, record.ItemID)
		drawn := lane == 0 && contains(number)
		if ticket := record.Ticket; ticket == nil {
			add("token", ok && !drawn)
		} else {
			add("token", ok && drawn && ticket.Number == number && ticket.Leaf == sha256.Sum256([]byte(token)))
		}
	}
	return checks
}

// Commitment returns the commitment to a reveal.
func Commitment(reveal Hash) Hash { return sha256.Sum256(reveal[:]) }

// Seed returns the seed of a draw; beacon may be nil.
func Seed(item string, reveal, root Hash, beacon *Hash) Hash {
	text := bytes.Join([][]byte{[]byte("daegi-draw-v1"), []byte(item), append(reveal[:], root[:]...)}, []byte{0})
	if beacon != nil {
		text = append(text, beacon[:]...)
	}
	return sha256.Sum256(text)
}

// Rank returns the rank from 0 of an index of a cohort.
func Rank(seed Hash, size, index uint64) uint64 {
	half := max(1, (bits.Len64(size-1)+1)/2)
	mask := uint64(1)<<half - 1
	for {
		left, right := index>>half, index&mask
		for round := range 12 {
			left, right = right, left^sip(seed, append([]byte{byte(round)}, binary.BigEndian.AppendUint64(nil, right)...))&mask
		}
		index = left<<half | right
		if index < size {
			return index
		}
	}
}

// sip returns SipHash-2-4 of a message with the first 16 bytes of the seed as its key.
func sip(seed Hash, message []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:16])
	initial := []byte("somepseudorandomlygeneratedbytes")
	var v [4]uint64
	for i := range v {
		v[i] = binary.BigEndian.Uint64(initial[8*i:])
	}
	v[0], v[1], v[2], v[3] = v[0]^k0, v[1]^k1, v[2]^k0, v[3]^k1
	rounds := func(count int) {
		for range count {
			v[0] += v[1]
			v[2] += v[3]
			v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
			v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[1]
			v[0] += v[3]
			v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
			v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append(bytes.Clone(message), make([]byte, 8-len(message)%8)...)
	padded[len(padded)-1] = byte(len(message))
	for ; len(padded) > 0; padded = padded[8:] {
		word := binary.LittleEndian.Uint64(padded)
		v[3] ^= word
		rounds(2)
		v[0] ^= word
	}
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// Root returns the Merkle tree hash of leaves: RFC 6962, section 2.1.
func Root(leaves []Hash) Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leafHash(leaves[0])
	}
	split := 1 << (bits.Len(uint(len(leaves)-1)) - 1)
	return nodeHash(Root(leaves[:split]), Root(leaves[split:]))
}

// VerifyPath returns whether a path proves a leaf. It walks down the shape of the tree, while the other implementations walk
// up as in RFC 9162.
func VerifyPath(leaf Hash, index, size uint64, path []Hash, root Hash) bool {
	if index >= size {
		return false
	}
	hash, ok := rootFrom(leaf, index, size, path)
	return ok && hash == root
}

func rootFrom(leaf Hash, index, size uint64, path []Hash) (Hash, bool) {
	if size == 1 {
		return leafHash(leaf), len(path) == 0
	}
	if len(path) == 0 {
		return Hash{}, false
	}
	top, rest := path[len(path)-1], path[:len(path)-1]
	split := uint64(1) << (bits.Len64(size-1) - 1)
	if index < split {
		hash, ok := rootFrom(leaf, index, split, rest)
		return nodeHash(hash, top), ok
	}
	hash, ok := rootFrom(leaf, index-split, size-split, rest)
	return nodeHash(top, hash), ok
}

func leafHash(leaf Hash) Hash { return sha256.Sum256(append([]byte{0}, leaf[:]...)) }

func nodeHash(left, right Hash) Hash {
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func checkBeacon(record Record) bool {
	if record.BeaconSignature == "" {
		return record.BeaconRound == nil || record.Beacon != nil
	}
	signature, err := hex.DecodeString(record.BeaconSignature)
	return err == nil && record.BeaconRound != nil && record.Beacon != nil && *record.Beacon == sha256.Sum256(signature)
}

var uuid = regexp.MustCompile(`^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f])[0-9a-f]{2}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// tokenFields returns the number and the lane of a token of an item.
func tokenFields(token, item string) (number, lane uint64, ok bool) {
	head, tail := token[:max(0, len(token)-36)], token[max(0, len(token)-36):]
	user, ofItem := strings.CutSuffix(head, "-"+item+"-")
	found := uuid.FindStringSubmatch(tail)
	if !ofItem || user == "" || found == nil {
		return 0, 0, false
	}
	number, _ = strconv.ParseUint(found[1]+found[2], 16, 64)
	lane, _ = strconv.ParseUint(found[3], 16, 64)
	return number, lane, true
}
