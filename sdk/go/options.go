package guard

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// OnUnavailable is what a guard does while daegi is unreachable and the guard needs it: for the keys, until the first successful
// fetch, or for an online check.
type OnUnavailable int

const (
	// FailClosed refuses requests that could not be checked, with 503.
	FailClosed OnUnavailable = iota
	// FailOpen accepts any well-formed, unexpired pass without verifying its signature or revocation.
	FailOpen
)

type config struct {
	publicURL, browserURL, internalURL string
	online                             bool
	onUnavailable                      OnUnavailable
	clockSkew                          time.Duration
	keyTTL, minFetchInterval, timeout  time.Duration
	client                             *http.Client
	clock                              func() time.Time
	logger                             *slog.Logger
}

// Option configures a guard.
type Option func(*config)

// WithBrowserURL sets daegi's public URL as browsers reach it. Redirects to the waiting page use it. Default: the public URL.
func WithBrowserURL(url string) Option { return func(c *config) { c.browserURL = url } }

// WithInternalURL sets daegi's internal URL. It is required to complete entries and to check online.
func WithInternalURL(url string) Option { return func(c *config) { c.internalURL = url } }

// WithOnlineChecks also checks with daegi, for each request, that the entry has not ended.
func WithOnlineChecks() Option { return func(c *config) { c.online = true } }

// WithOnUnavailable sets what to do while daegi is unreachable. Default: [FailClosed].
func WithOnUnavailable(choice OnUnavailable) Option {
	return func(c *config) { c.onUnavailable = choice }
}

// WithClockSkew sets the tolerated difference between the clocks of daegi and this service. Default: 5 s.
func WithClockSkew(skew time.Duration) Option { return func(c *config) { c.clockSkew = skew } }

// WithKeyTTL sets the age at which keys are fetched again. Default: 5 minutes.
func WithKeyTTL(ttl time.Duration) Option { return func(c *config) { c.keyTTL = ttl } }

// WithMinFetchInterval sets the minimum time between two fetches of keys, whatever key ids passes name. Default: 5 s.
func WithMinFetchInterval(interval time.Duration) Option {
	return func(c *config) { c.minFetchInterval = interval }
}

// WithTimeout sets the timeout of one call to daegi. Default: 2 s.
func WithTimeout(timeout time.Duration) Option { return func(c *config) { c.timeout = timeout } }

// WithHTTPClient sets the client for calls to daegi, for example one with own certificates. Default: [http.DefaultClient].
func WithHTTPClient(client *http.Client) Option { return func(c *config) { c.client = client } }

// WithClock sets another clock, for example one that a test controls.
func WithClock(now func() time.Time) Option { return func(c *config) { c.clock = now } }

// WithLogger sets the logger for failed calls to daegi. Default: [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(c *config) { c.logger = logger } }

func newConfig(publicURL string, options []Option) (config, error) {
	c := config{
		publicURL:        publicURL,
		clockSkew:        5 * time.Second,
		keyTTL:           300 * time.Second,
		minFetchInterval: 5 * time.Second,
		timeout:          2 * time.Second,
		client:           http.DefaultClient,
		clock:            time.Now,
		logger:           slog.Default(),
	}
	for _, option := range options {
		option(&c)
	}
	if c.browserURL == "" {
		c.browserURL = publicURL
	}
	for _, url := range []*string{&c.publicURL, &c.browserURL, &c.internalURL} {
		*url = strings.TrimRight(*url, "/")
	}
	if c.publicURL == "" {
		return config{}, errors.New("the public URL is empty; keys are fetched from it")
	}
	if c.online && c.internalURL == "" {
		return config{}, errors.New("the internal URL is not configured; it is required to check online: use WithInternalURL")
	}
	return c, nil
}
