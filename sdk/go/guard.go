// Package guard protects the endpoints of a Go service: only users admitted by a daegi waiting room reach them, all others are
// sent to the waiting page. It works with net/http and every router that accepts func(http.Handler) http.Handler, such as chi.
//
// The guards for other languages behave identically; sdk/vectors tests all of them.
package guard

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Guard accepts only users admitted by the waiting room. One per process is enough: it caches daegi's keys. It is safe for
// concurrent use.
type Guard struct {
	config   config
	keys     *jwksClient
	internal *internalClient
}

// Authorization is the outcome of an authorized request.
type Authorization struct {
	// Entry is the entry of the chosen pass.
	Entry Entry
	// Keep is the chosen pass if it came with the URL: the response must set the guard's cookie to it. Otherwise it is empty.
	Keep string
}

// New returns a guard for the daegi at this public URL, as this service reaches it. It returns an error if the options
// contradict each other. The first pass triggers the first fetch of keys.
func New(publicURL string, options ...Option) (*Guard, error) {
	config, err := newConfig(publicURL, options)
	if err != nil {
		return nil, err
	}
	guard := &Guard{config: config, keys: newJWKSClient(config)}
	if config.internalURL != "" {
		guard.internal = &internalClient{config}
	}
	return guard, nil
}

// Check checks a pass for an item. The error is a [Refusal] if the pass is refused.
func (g *Guard) Check(ctx context.Context, item, pass string) (Entry, error) {
	entry, err := g.read(ctx, item, pass)
	if err != nil {
		return Entry{}, err
	}
	return entry, g.confirm(ctx, item, pass)
}

// Authorize checks a request for an item and chooses between its passes. The error is a [Refusal] if none is valid.
//
// A browser may send two, one in its cookie and one in the URL. A link must neither sign a user out nor replace them by another
// user. Therefore a valid cookie wins unless the URL carries a pass of the same user that expires later. A pass that was not
// chosen is not stored. If both are refused, the refusal is that of the URL.
func (g *Guard) Authorize(r *http.Request, item string) (Authorization, error) {
	ctx, found := r.Context(), findPasses(r, item)
	if found.inURL == "" {
		entry, err := g.Check(ctx, item, found.stored)
		return Authorization{Entry: entry}, err
	}
	if found.stored == "" {
		entry, err := g.Check(ctx, item, found.inURL)
		return Authorization{Entry: entry, Keep: found.inURL}, err
	}
	first, second := g.candidate(ctx, item, found.inURL), g.candidate(ctx, item, found.stored)
	first.keep = found.inURL
	if first.err != nil && second.err != nil {
		return Authorization{}, first.err
	}
	if second.isPreferredOver(first) {
		first, second = second, first
	}
	err := g.confirm(ctx, item, first.pass)
	if errors.Is(err, PassRevoked) && second.err == nil {
		// Use the second pass if the first one was revoked.
		first, err = second, g.confirm(ctx, item, second.pass)
	}
	return Authorization{Entry: first.entry, Keep: first.keep}, err
}

// candidate is one of two passes of a request, checked offline.
type candidate struct {
	pass, keep string
	entry      Entry
	err        error
}

func (g *Guard) candidate(ctx context.Context, item, pass string) candidate {
	entry, err := g.read(ctx, item, pass)
	return candidate{pass: pass, entry: entry, err: err}
}

// Returns whether this pass, of a cookie, is preferred over the one in the URL.
func (c candidate) isPreferredOver(inURL candidate) bool {
	if c.err != nil || inURL.err != nil {
		return c.err == nil
	}
	return c.entry.UserID != inURL.entry.UserID || inURL.entry.ExpiresAt <= c.entry.ExpiresAt
}

// Complete ends an entry, for example after the order was placed, so that daegi can admit the next user. It is idempotent and
// returns whether this call ended the entry. If daegi is unreachable, the error says so, and the entry ends when its pass expires.
func (g *Guard) Complete(ctx context.Context, entry Entry) (bool, error) {
	if g.internal == nil {
		return false, errors.New("the internal URL is not configured; it is required to complete entries: use WithInternalURL")
	}
	return g.internal.complete(ctx, entry.ItemID, entry.Token())
}

// WaitingPage returns the URL of the item's waiting page.
func (g *Guard) WaitingPage(item string) string {
	return g.config.browserURL + "/wait/" + item
}

// Verifies a pass offline and returns its entry.
func (g *Guard) read(ctx context.Context, item, pass string) (Entry, error) {
	if pass == "" {
		return Entry{}, PassMissing
	}
	kid, ok := keyID(pass)
	if !ok {
		return Entry{}, PassInvalid
	}
	key, err := g.keys.find(ctx, kid)
	switch {
	case errors.Is(err, errKeysUnavailable) && g.config.onUnavailable == FailOpen:
		// The signature cannot be verified: the entry says so.
		key = nil
	case err != nil:
		return Entry{}, Unavailable
	case key == nil:
		return Entry{}, PassInvalid
	}
	return readClaims(pass, key, item, g.now(), g.config.clockSkew)
}

func (g *Guard) confirm(ctx context.Context, item, pass string) error {
	if !g.config.online {
		return nil
	}
	live, err := g.internal.hasEntry(ctx, item, pass)
	if err != nil {
		g.config.logger.Warn("online check of a pass failed", "item.id", item, "error", err)
		if g.config.onUnavailable == FailOpen {
			return nil
		}
		return Unavailable
	}
	if !live {
		return PassRevoked
	}
	return nil
}

func (g *Guard) now() time.Time { return g.config.clock() }
