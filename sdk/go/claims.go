package guard

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Entry is an admitted user, as stated by their pass. All passes of an entry share ItemID, UserID and Number: use these as the key
// for one order per entry.
type Entry struct {
	UserID string
	ItemID string
	// PassID is the id of the pass. It changes when daegi's ticket secret is rotated.
	PassID string
	// Number is the ticket's number, unique in its lane.
	Number int64
	// Lane is the name of the ticket's lane; empty for the standard lane.
	Lane string
	// ExpiresAt is when the entry expires, in seconds since the Unix epoch.
	ExpiresAt int64
	// SignatureVerified is false only with [FailOpen].
	SignatureVerified bool
}

// Token returns the ticket's token, which identifies the entry to daegi.
func (e Entry) Token() string { return e.UserID + "-" + e.ItemID + "-" + e.PassID }

const (
	issuer       = "daegi"
	standardLane = "standard"
)

var (
	base64URLPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	itemPattern      = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,64}$`)
	userPattern      = regexp.MustCompile(`^[A-Za-z0-9._~@:+-]{1,128}$`)
	lanePattern      = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,32}$`)
	uuidPattern      = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// claims are the members of a JSON object by their exact names. Decoding into a struct would ignore case.
type claims map[string]json.RawMessage

// Reads the key id from the JWT header. It is unverified.
func keyID(pass string) (kid string, ok bool) {
	parts := strings.Split(pass, ".")
	if len(parts) != 3 {
		return "", false
	}
	header := decode(parts[0])
	if named, _ := header.text("alg"); named != edDSA && named != es256 && named != rs256 {
		return "", false
	}
	return header.text("kid")
}

// Validates signature, issuer, item and times, and returns the entry. Without a key the signature is not verified.
func readClaims(pass string, key *publicKey, item string, now time.Time, skew time.Duration) (Entry, error) {
	if key != nil && !isSigned(pass, key) {
		return Entry{}, PassInvalid
	}
	claims := decode(strings.Split(pass, ".")[1])
	audience, hasItem := claims.matching("aud", itemPattern)
	user, hasUser := claims.matching("sub", userPattern)
	id, hasID := claims.matching("jti", uuidPattern)
	number, hasNumber := claims.count("num")
	issuedAt, hasStart := claims.count("iat")
	expiresAt, hasEnd := claims.count("exp")
	lane, notBefore, hasRest := "", int64(0), true
	if claims.has("lane") {
		lane, hasRest = claims.matching("lane", lanePattern)
		hasRest = hasRest && lane != standardLane
	}
	if hasRest && claims.has("nbf") {
		notBefore, hasRest = claims.count("nbf")
	}
	whole := hasItem && hasUser && hasID && hasNumber && hasStart && hasEnd && hasRest
	if signer, _ := claims.text("iss"); !whole || signer != issuer {
		return Entry{}, PassInvalid
	}
	seconds, tolerance := now.Unix(), int64(skew/time.Second)
	switch {
	case audience != item:
		return Entry{}, PassOtherItem
	case max(issuedAt, notBefore) > seconds+tolerance:
		return Entry{}, PassNotYetValid
	case expiresAt <= seconds-tolerance:
		return Entry{}, PassExpired
	}
	return Entry{user, audience, id, number, lane, expiresAt, key != nil}, nil
}

func isSigned(pass string, key *publicKey) bool {
	end := strings.LastIndexByte(pass, '.')
	signature, ok := decodeBase64URL(pass[end+1:])
	// The key fixes the algorithm: trusting the header would allow "none" and HS256 forgeries.
	named, _ := decode(pass[:strings.IndexByte(pass, '.')]).text("alg")
	return ok && named == key.algorithm && key.verify([]byte(pass[:end]), signature)
}

// Decodes a JSON object from a part of a JWT. Returns nil if there is none.
func decode(part string) claims {
	text, ok := decodeBase64URL(part)
	if !ok {
		return nil
	}
	var object claims
	if json.Unmarshal(text, &object) != nil {
		return nil
	}
	return object
}

// The pattern rejects line breaks, which the decoder skips and a JWT must not have.
func decodeBase64URL(text string) ([]byte, bool) {
	if !base64URLPattern.MatchString(text) {
		return nil, false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	return decoded, err == nil
}

// Returns whether the claim is there and not null.
func (c claims) has(name string) bool {
	value, found := c[name]
	return found && string(value) != "null"
}

func (c claims) text(name string) (text string, ok bool) {
	if !c.has(name) || json.Unmarshal(c[name], &text) != nil {
		return "", false
	}
	return text, true
}

func (c claims) matching(name string, pattern *regexp.Regexp) (string, bool) {
	text, ok := c.text(name)
	return text, ok && pattern.MatchString(text)
}

func (c claims) count(name string) (int64, bool) {
	count, err := strconv.ParseInt(string(c[name]), 10, 64)
	return count, err == nil && count >= 0
}
