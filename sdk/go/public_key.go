package guard

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
)

const (
	edDSA = "EdDSA"
	es256 = "ES256"
	rs256 = "RS256"

	// The minimum size of an RSA key (RFC 7518).
	minRSABits = 2048
	// The bytes of each of the two numbers of an ES256 signature.
	es256Bytes = 32
)

// publicKey verifies signatures of exactly one algorithm.
type publicKey struct {
	algorithm string
	verify    func(signed, signature []byte) bool
}

// Returns a key and its id, or nil for a key of another type, which the set may contain.
func usableKey(text json.RawMessage) (kid string, key *publicKey) {
	var published struct {
		Kid *string `json:"kid"`
		Alg *string `json:"alg"`
		Kty string  `json:"kty"`
		Crv string  `json:"crv"`
		X   string  `json:"x"`
		Y   string  `json:"y"`
		N   string  `json:"n"`
		E   string  `json:"e"`
	}
	if json.Unmarshal(text, &published) != nil || published.Kid == nil {
		return "", nil
	}
	switch {
	case published.Kty == "OKP" && published.Crv == "Ed25519":
		key = ed25519Key(published.X)
	case published.Kty == "EC" && published.Crv == "P-256":
		key = p256Key(published.X, published.Y)
	case published.Kty == "RSA":
		key = rsaKey(published.N, published.E)
	}
	if key == nil || (published.Alg != nil && *published.Alg != key.algorithm) {
		return "", nil
	}
	return *published.Kid, key
}

func ed25519Key(x string) *publicKey {
	decoded, err := base64.RawURLEncoding.DecodeString(x)
	if err != nil || len(decoded) != ed25519.PublicKeySize {
		return nil
	}
	return &publicKey{edDSA, func(signed, signature []byte) bool {
		return ed25519.Verify(decoded, signed, signature)
	}}
}

func p256Key(x, y string) *publicKey {
	curve, left, right := elliptic.P256(), number(x), number(y)
	if left == nil || right == nil {
		return nil
	}
	key := &ecdsa.PublicKey{Curve: curve, X: left, Y: right}
	// Fails for a point that is not on the curve.
	if _, err := key.ECDH(); err != nil {
		return nil
	}
	return &publicKey{es256, func(signed, signature []byte) bool {
		if len(signature) != 2*es256Bytes {
			return false
		}
		digest := sha256.Sum256(signed)
		r, s := new(big.Int).SetBytes(signature[:es256Bytes]), new(big.Int).SetBytes(signature[es256Bytes:])
		return ecdsa.Verify(key, digest[:], r, s)
	}}
}

func rsaKey(n, e string) *publicKey {
	modulus, exponent := number(n), number(e)
	if modulus == nil || exponent == nil || modulus.BitLen() < minRSABits || exponent.BitLen() > 31 {
		return nil
	}
	key := &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}
	return &publicKey{rs256, func(signed, signature []byte) bool {
		digest := sha256.Sum256(signed)
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	}}
}

// Returns a number in base64url, or nil.
func number(text string) *big.Int {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(decoded) == 0 {
		return nil
	}
	return new(big.Int).SetBytes(decoded)
}
