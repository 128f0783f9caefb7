package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// No fetch has succeeded yet, so signatures cannot be verified.
var errKeysUnavailable = errors.New("no keys fetched yet")

// jwksClient fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys are fetched again when
// they are older than keyTTL, or when a pass names an unknown key id, because daegi may have rotated its keys.
type jwksClient struct {
	config config
	known  atomic.Pointer[keySet]
	// Holds the time of the last attempt. It is taken during a fetch, so that concurrent requests share one.
	lastFetch chan time.Time
}

type keySet struct {
	keys map[string]*publicKey
	// Zero: no fetch has succeeded.
	fetchedAt time.Time
}

func newJWKSClient(config config) *jwksClient {
	client := &jwksClient{config: config, lastFetch: make(chan time.Time, 1)}
	client.known.Store(&keySet{})
	client.lastFetch <- time.Time{}
	return client
}

// Returns the key with this id, or nil if daegi does not publish it.
func (c *jwksClient) find(ctx context.Context, kid string) (*publicKey, error) {
	before := c.known.Load()
	if before.keys[kid] == nil {
		select {
		case lastFetch := <-c.lastFetch:
			c.fetchIfDue(ctx, lastFetch)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else if c.isOlderThan(before.fetchedAt, c.config.keyTTL) {
		// One request fetches; the others use the cached key meanwhile.
		select {
		case lastFetch := <-c.lastFetch:
			c.fetchIfDue(ctx, lastFetch)
		default:
		}
	}
	known := c.known.Load()
	if known.fetchedAt.IsZero() {
		return nil, errKeysUnavailable
	}
	return known.keys[kid], nil
}

// Fetches unless the last attempt is more recent than minFetchInterval. On failure the cached keys stay valid.
func (c *jwksClient) fetchIfDue(ctx context.Context, lastFetch time.Time) {
	defer func() { c.lastFetch <- lastFetch }()
	if !c.isOlderThan(lastFetch, c.config.minFetchInterval) {
		return
	}
	lastFetch = c.config.clock()
	// A client that disconnects must not end the fetch, for which others wait.
	keys, err := c.fetch(context.WithoutCancel(ctx))
	if err != nil {
		c.config.logger.Warn("fetching daegi's public keys failed, using cached keys", "error", err)
		return
	}
	c.known.Store(&keySet{keys, lastFetch})
}

func (c *jwksClient) fetch(ctx context.Context) (map[string]*publicKey, error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	url := c.config.publicURL + "/.well-known/jwks.json"
	if err := c.config.call(ctx, http.MethodGet, url, nil, &set); err != nil {
		return nil, err
	}
	if set.Keys == nil {
		return nil, fmt.Errorf("%s did not return a key set", url)
	}
	keys := map[string]*publicKey{}
	for _, text := range *set.Keys {
		if kid, key := usableKey(text); key != nil {
			keys[kid] = key
		}
	}
	return keys, nil
}

// Returns whether since is at least age away. The absolute difference covers a clock that was set back.
func (c *jwksClient) isOlderThan(since time.Time, age time.Duration) bool {
	return since.IsZero() || c.config.clock().Sub(since).Abs() >= age
}
