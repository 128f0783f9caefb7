package guard_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"daegi.io/guard"
)

const (
	now   = 1_000
	token = "kim-concert-01890000-0000-8000-8000-000000000007"
)

// shop has routes behind a guard, with a stub of daegi and a pass of its key.
type shop struct {
	daegi *stubDaegi
	guard *guard.Guard
	pass  string
}

func openShop(t *testing.T, options ...guard.Option) *shop {
	t.Helper()
	daegi := startStub(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	daegi.keys = json.RawMessage(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}]}`)
	options = append([]guard.Option{
		guard.WithInternalURL(daegi.url), guard.WithBrowserURL("https://wait.example/"), guard.WithClock(at(now)),
	}, options...)
	return &shop{daegi, newGuard(t, daegi.url, options...), signedPass(private)}
}

func signedPass(key ed25519.PrivateKey) string {
	claims := `{"iss":"daegi","aud":"concert","sub":"kim","jti":"01890000-0000-8000-8000-000000000007","num":7,"iat":900,"exp":1600}`
	text := base64URL(`{"alg":"EdDSA","kid":"1"}`) + "." + base64URL(claims)
	return text + "." + base64URL(string(ed25519.Sign(key, []byte(text))))
}

func base64URL(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func (s *shop) serve(protection guard.Protection, handler http.HandlerFunc, target string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	s.guard.Middleware(protection)(handler).ServeHTTP(recorder, request)
	return recorder
}

func hello(w http.ResponseWriter, r *http.Request) {
	entry, _ := guard.EntryFrom(r.Context())
	_, _ = w.Write([]byte("hello " + entry.UserID))
}

var concert = guard.Protection{Item: "concert"}

func TestOtherHeadersOfTheResponseStay(t *testing.T) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Vary", "origin")
	request := httptest.NewRequest(http.MethodGet, "/checkout?pass=a.b.c", nil)
	openShop(t).guard.Middleware(concert)(http.HandlerFunc(hello)).ServeHTTP(recorder, request)
	assertEqual(t, recorder.Code, http.StatusUnauthorized)
	assertEqual(t, recorder.Header().Values("Vary"), []string{"origin", "accept"})
	assertEqual(t, recorder.Header().Get("Set-Cookie"), "")
}

func TestAPassFromTheURLIsStoredInACookie(t *testing.T) {
	shop := openShop(t)
	first := shop.serve(concert, hello, "/checkout?pass="+shop.pass)
	cookie := first.Header().Get("Set-Cookie")
	assertEqual(t, cookie, "daegi-pass-concert="+shop.pass+"; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure")
	assertEqual(t, first.Body.String(), "hello kim")
	// HTTP/2 may split cookies into several headers.
	second := shop.serve(concert, hello, "/checkout", "Cookie", "theme=dark", "Cookie", strings.Split(cookie, ";")[0])
	assertEqual(t, second.Header().Get("Set-Cookie"), "")
	assertEqual(t, second.Body.String(), "hello kim")
}

func TestTheItemMayBeTakenFromTheRequest(t *testing.T) {
	shop := openShop(t)
	byPath := guard.Protection{ItemOf: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/items/") }}
	for path, status := range map[string]int{"/items/concert": 200, "/items/drop": 403, "/items/a$b": 404, "/items/": 404} {
		assertEqual(t, shop.serve(byPath, hello, path, "daegi-pass", shop.pass).Code, status)
	}
}

func TestOnlyASuccessfulResponseCompletesTheEntry(t *testing.T) {
	completing := guard.Protection{Item: "concert", CompleteOnSuccess: true}
	for name, tested := range map[string]struct {
		handler   http.HandlerFunc
		completes bool
	}{
		"a status":                     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, true},
		"a body":                       {hello, true},
		"nothing":                      {func(http.ResponseWriter, *http.Request) {}, true},
		"a flush, then a failed write": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.WriteHeader(500) }, true},
		"a hint first":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, true},
		"a refused order":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPaymentRequired) }, false},
		"a redirect":                   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			shop := openShop(t)
			shop.serve(completing, tested.handler, "/orders", "daegi-pass", shop.pass)
			var expected []string
			if tested.completes {
				expected = []string{token}
			}
			assertEqual(t, shop.daegi.completed, expected)
		})
	}
}

func TestAPanicCompletesNothing(t *testing.T) {
	shop := openShop(t)
	func() {
		defer func() { assertEqual(t, recover(), any("the order failed")) }()
		fails := func(http.ResponseWriter, *http.Request) { panic("the order failed") }
		shop.serve(guard.Protection{Item: "concert", CompleteOnSuccess: true}, fails, "/orders", "daegi-pass", shop.pass)
	}()
	assertEqual(t, len(shop.daegi.completed), 0)
}

func TestAFailedCompletionDoesNotChangeTheResponse(t *testing.T) {
	shop := openShop(t, guard.WithInternalURL("http://127.0.0.1:1"))
	response := shop.serve(guard.Protection{Item: "concert", CompleteOnSuccess: true}, hello, "/orders", "daegi-pass", shop.pass)
	assertEqual(t, response.Body.String(), "hello kim")
}

func TestADisconnectedClientStillCompletesItsOrder(t *testing.T) {
	shop := openShop(t)
	ctx, cancel := context.WithCancel(context.Background())
	request := httptest.NewRequest(http.MethodPost, "/orders", nil).WithContext(ctx)
	request.Header.Set("daegi-pass", shop.pass)
	order := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { cancel(); w.WriteHeader(http.StatusCreated) })
	shop.guard.Middleware(guard.Protection{Item: "concert", CompleteOnSuccess: true})(order).ServeHTTP(httptest.NewRecorder(), request)
	assertEqual(t, shop.daegi.completed, []string{token})
}

func TestACompletingRouteSupportsHijacking(t *testing.T) {
	shop := openShop(t)
	upgrade := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte("HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
		_ = connection.Close()
	})
	server := httptest.NewServer(shop.guard.Middleware(guard.Protection{Item: "concert", CompleteOnSuccess: true})(upgrade))
	response, err := http.Get(server.URL + "/?pass=" + shop.pass)
	if err != nil {
		t.Fatal(err)
	}
	assertEqual(t, response.StatusCode, http.StatusTeapot)
	server.Close()
	assertEqual(t, len(shop.daegi.completed), 0)
}

func TestContradictingOptionsAreRejected(t *testing.T) {
	_, online := guard.New("http://wait.example", guard.WithOnlineChecks())
	_, nowhere := guard.New("/")
	if online == nil || nowhere == nil {
		t.Error(online, nowhere)
	}
	far := newGuard(t, "http://wait.example")
	if _, err := far.Complete(context.Background(), guard.Entry{}); err == nil {
		t.Error("an entry is completed without an internal URL")
	}
	both := guard.Protection{Item: "concert", ItemOf: func(*http.Request) string { return "" }}
	for _, wrong := range []guard.Protection{{}, {Item: "a$b"}, both, {Item: "concert", CompleteOnSuccess: true}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("accepted", wrong)
				}
			}()
			far.Middleware(wrong)
		}()
	}
	if _, ok := guard.EntryFrom(context.Background()); ok {
		t.Error("there is an entry without a guard")
	}
}

// A client that sends an invented key id and disconnects must not use up the fetch that others wait for.
func TestADisconnectedClientDoesNotEndAFetchOfKeys(t *testing.T) {
	shop := openShop(t)
	release := make(chan struct{})
	shop.daegi.set(func(s *stubDaegi) { s.beforeKeys = release })
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() {
		_, err := shop.guard.Check(ctx, "concert", base64URL(`{"alg":"EdDSA","kid":"invented"}`)+".e30.AA")
		first <- err
	}()
	waitFor(t, "the fetch has begun", func() bool { return shop.daegi.calls()[0] == 1 })
	cancel()
	second := make(chan error, 1)
	go func() {
		_, err := shop.guard.Check(context.Background(), "concert", shop.pass)
		second <- err
	}()
	close(release)
	assertEqual(t, <-second, error(nil))
	assertEqual(t, <-first, error(guard.PassInvalid))
	assertEqual(t, shop.daegi.calls()[0], 1)
}

// A request whose client has gone does not wait for a fetch.
func TestAWaitingRequestEndsWithItsClient(t *testing.T) {
	shop := openShop(t)
	release := make(chan struct{})
	shop.daegi.set(func(s *stubDaegi) { s.beforeKeys = release })
	first := make(chan error, 1)
	go func() {
		_, err := shop.guard.Check(context.Background(), "concert", shop.pass)
		first <- err
	}()
	waitFor(t, "the fetch has begun", func() bool { return shop.daegi.calls()[0] == 1 })
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := shop.guard.Check(gone, "concert", shop.pass)
	assertEqual(t, err, error(guard.Unavailable))
	close(release)
	assertEqual(t, <-first, error(nil))
}

// Cached keys that are too old are used while one request fetches new ones.
func TestRequestsWithAKnownKeyDoNotWaitForAFetch(t *testing.T) {
	var clock = time.Unix(now, 0)
	shop := openShop(t, guard.WithClock(func() time.Time { return clock }))
	check := func() error { _, err := shop.guard.Check(context.Background(), "concert", shop.pass); return err }
	assertEqual(t, check(), error(nil))
	release := make(chan struct{})
	shop.daegi.set(func(s *stubDaegi) { s.beforeKeys = release })
	clock = clock.Add(300 * time.Second)
	first := make(chan error, 1)
	go func() { first <- check() }()
	waitFor(t, "the fetch has begun", func() bool { return shop.daegi.calls()[0] == 2 })
	assertEqual(t, check(), error(nil))
	close(release)
	assertEqual(t, <-first, error(nil))
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": not within 10 s")
		}
	}
}

func TestAnHTTPCookieIsNotSecure(t *testing.T) {
	shop := openShop(t, guard.WithBrowserURL("http://wait.example"))
	cookie := shop.serve(concert, hello, "/?pass="+shop.pass).Header().Get("Set-Cookie")
	if !regexp.MustCompile(`^daegi-pass-concert=\S+; Path=/; Max-Age=600; HttpOnly; SameSite=Lax$`).MatchString(cookie) {
		t.Error(cookie)
	}
}
