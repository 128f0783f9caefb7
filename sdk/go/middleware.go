package guard

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Protection is how routes are protected. It needs either Item or ItemOf.
type Protection struct {
	// Item is the item of the routes.
	Item string
	// ItemOf takes the item from the request. A request without a valid item gets 404.
	ItemOf func(*http.Request) string
	// CompleteOnSuccess completes the entry after each successful response (2xx), so that daegi can admit the next user.
	CompleteOnSuccess bool
}

type entryKey struct{}

// EntryFrom returns the entry of an authorized request from its context. It returns false if the route is not behind a guard.
func EntryFrom(ctx context.Context) (Entry, bool) {
	entry, ok := ctx.Value(entryKey{}).(Entry)
	return entry, ok
}

// Middleware protects handlers. It panics if the protection names no item or an invalid one, or completes entries without an
// internal URL, because such a route would fail for every request.
func (g *Guard) Middleware(protection Protection) func(http.Handler) http.Handler {
	itemOf := protection.ItemOf
	switch {
	case itemOf == nil && !itemPattern.MatchString(protection.Item):
		panic("guard: the protection needs a valid Item, or ItemOf: " + protection.Item)
	case itemOf != nil && protection.Item != "":
		panic("guard: the protection has Item and ItemOf, and only one is used")
	case protection.CompleteOnSuccess && g.internal == nil:
		panic("guard: CompleteOnSuccess needs the internal URL: use WithInternalURL")
	case itemOf == nil:
		itemOf = func(*http.Request) string { return protection.Item }
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, ok := g.authorized(w, r, itemOf(r))
			if !ok {
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), entryKey{}, entry))
			if !protection.CompleteOnSuccess {
				next.ServeHTTP(w, r)
				return
			}
			recorder := &statusRecorder{ResponseWriter: w}
			next.ServeHTTP(recorder, r)
			if recorder.isSuccess() {
				g.tryComplete(r.Context(), entry)
			}
		})
	}
}

// Returns the entry of the request, and sets the cookie. Otherwise it writes the response and returns false.
func (g *Guard) authorized(w http.ResponseWriter, r *http.Request, item string) (Entry, bool) {
	accept := r.Header.Get("Accept")
	if !itemPattern.MatchString(item) {
		ItemNotFound.Write(w, accept, "")
		return Entry{}, false
	}
	authorization, err := g.Authorize(r, item)
	if err != nil {
		refusal := Unavailable
		errors.As(err, &refusal)
		refusal.Write(w, accept, g.WaitingPage(item))
		return Entry{}, false
	}
	if authorization.Keep != "" {
		https := strings.HasPrefix(g.config.browserURL, "https:")
		w.Header().Add("Set-Cookie", passCookie(authorization.Entry, authorization.Keep, g.now(), https))
	}
	return authorization.Entry, true
}

// Completes the entry. A failure does not change the response: the entry expires.
func (g *Guard) tryComplete(ctx context.Context, entry Entry) {
	// The order was placed, even if the client has disconnected meanwhile.
	if _, err := g.Complete(context.WithoutCancel(ctx), entry); err != nil {
		g.config.logger.Warn("entry not completed, it ends when its pass expires", "item.id", entry.ItemID, "error", err)
	}
}

// statusRecorder remembers the status of a response. [http.ResponseController] finds the other abilities of the writer with
// Unwrap; Flush and Hijack are there for code that asserts the interfaces.
type statusRecorder struct {
	http.ResponseWriter
	status   int
	hijacked bool
}

func (r *statusRecorder) WriteHeader(status int) {
	// 1xx are informational: the status follows.
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Write(body []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(body)
}

func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *statusRecorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	// A writer that cannot flush sends the response later.
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

func (r *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffer, err := http.NewResponseController(r.ResponseWriter).Hijack()
	r.hijacked = err == nil
	return connection, buffer, err
}

// Returns whether the response is 2xx. net/http sends 200 for a handler that writes nothing. A hijacked connection has no
// response that the guard sees.
func (r *statusRecorder) isSuccess() bool {
	return !r.hijacked && (r.status == 0 || r.status/100 == 2)
}
