// Package e2e runs shops in net/http and chi behind a real daegi, over HTTP. It is a module of its own, so that the guard has no
// dependency.
package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"daegi.io/guard"
	"github.com/go-chi/chi/v5"
)

var (
	daegi daegiProcess
	shops map[string]*httptest.Server
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var stop func()
	var err error
	if daegi, stop, err = startDaegi(); err != nil {
		return 1, err
	}
	defer stop()
	offline, err := guard.New(daegi.public, guard.WithInternalURL(daegi.internal))
	if err != nil {
		return 1, err
	}
	online, err := guard.New(daegi.public, guard.WithInternalURL(daegi.internal), guard.WithOnlineChecks())
	if err != nil {
		return 1, err
	}
	shops = map[string]*httptest.Server{
		"net/http": httptest.NewServer(inNetHTTP(offline, online)),
		"chi":      httptest.NewServer(inChi(offline, online)),
	}
	for _, shop := range shops {
		defer shop.Close()
	}
	return m.Run(), nil
}

var (
	concert  = guard.Protection{Item: "concert"}
	ordering = guard.Protection{Item: "concert", CompleteOnSuccess: true}
)

// The same shop in both: a checkout, orders that complete the entry, and a page with an online check.
func inNetHTTP(offline, online *guard.Guard) http.Handler {
	byPath := guard.Protection{ItemOf: func(r *http.Request) string { return r.PathValue("item") }}
	shop := http.NewServeMux()
	shop.Handle("GET /checkout", offline.Middleware(concert)(http.HandlerFunc(hello)))
	shop.Handle("GET /items/{item}", offline.Middleware(byPath)(http.HandlerFunc(hello)))
	shop.Handle("GET /strict", online.Middleware(concert)(http.HandlerFunc(hello)))
	shop.Handle("POST /orders/{status}", offline.Middleware(ordering)(http.HandlerFunc(order)))
	shop.HandleFunc("GET /open", func(http.ResponseWriter, *http.Request) {})
	return shop
}

func inChi(offline, online *guard.Guard) http.Handler {
	byPath := guard.Protection{ItemOf: func(r *http.Request) string { return chi.URLParam(r, "item") }}
	shop := chi.NewRouter()
	shop.Group(func(protected chi.Router) {
		protected.Use(offline.Middleware(concert))
		protected.Get("/checkout", hello)
	})
	shop.With(offline.Middleware(byPath)).Get("/items/{item}", hello)
	shop.With(online.Middleware(concert)).Get("/strict", hello)
	shop.With(offline.Middleware(ordering)).Post("/orders/{status}", order)
	shop.Get("/open", func(http.ResponseWriter, *http.Request) {})
	return shop
}

func hello(w http.ResponseWriter, r *http.Request) {
	entry, _ := guard.EntryFrom(r.Context())
	fmt.Fprint(w, "hello ", entry.UserID)
}

func order(w http.ResponseWriter, r *http.Request) {
	status, err := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	if err != nil {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
}

type reply struct {
	status int
	header http.Header
	body   string
}

func send(t *testing.T, method, url string, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	// Without redirects and cookies.
	response, err := http.DefaultTransport.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return reply{response.StatusCode, response.Header, string(body)}
}

func (r reply) assert(t *testing.T, status int, text string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.body, text) {
		t.Errorf("got %d %s, expected %d with %q", r.status, r.body, status, text)
	}
}

// Runs a test in both shops. The user's name contains that of the shop, so that each has an own ticket.
func inEachShop(t *testing.T, test func(t *testing.T, url, suffix string)) {
	for name, shop := range shops {
		t.Run(name, func(t *testing.T) { test(t, shop.URL, strings.ReplaceAll(name, "/", "-")) })
	}
}

func TestBrowsersWithoutAPassAreRedirectedAndOtherClientsGetAProblem(t *testing.T) {
	inEachShop(t, func(t *testing.T, shop, _ string) {
		for _, path := range []string{"/checkout", "/strict"} {
			browser := send(t, http.MethodGet, shop+path, "accept", "text/html")
			browser.assert(t, http.StatusSeeOther, "")
			page := browser.header.Get("location")
			if page != daegi.public+"/wait/concert" || statusOf(page) != http.StatusOK {
				t.Errorf("%s is not the waiting page", page)
			}
			program := send(t, http.MethodGet, shop+path, "accept", "application/json")
			program.assert(t, http.StatusUnauthorized, `"PASS_MISSING"`)
			program.assert(t, http.StatusUnauthorized, `"waitingPage":"`+page+`"`)
		}
		send(t, http.MethodGet, shop+"/open").assert(t, http.StatusOK, "")
	})
}

func TestAnAdmittedUserPassesAndTheBrowserStoresThePass(t *testing.T) {
	stored := regexp.MustCompile(`^daegi-pass-concert=\S+; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax$`)
	inEachShop(t, func(t *testing.T, shop, suffix string) {
		pass := daegi.admit(t, "kim-"+suffix).ticket(t).Pass
		first := send(t, http.MethodGet, shop+"/checkout?pass="+pass)
		first.assert(t, http.StatusOK, "hello kim-"+suffix)
		cookie := first.header.Get("set-cookie")
		if !stored.MatchString(cookie) {
			t.Error(cookie)
		}
		second := send(t, http.MethodGet, shop+"/checkout", "cookie", strings.Split(cookie, ";")[0])
		second.assert(t, http.StatusOK, "hello kim-"+suffix)
		if second.header.Get("set-cookie") != "" {
			t.Error("the cookie is set again")
		}
	})
}

func TestTheItemMayBePartOfTheRequest(t *testing.T) {
	inEachShop(t, func(t *testing.T, shop, suffix string) {
		pass := daegi.admit(t, "cho-"+suffix).ticket(t).Pass
		for item, status := range map[string]int{"concert": 200, "drop": 403, "a$b": 404} {
			send(t, http.MethodGet, shop+"/items/"+item, "daegi-pass", pass).assert(t, status, "")
		}
	})
}

func TestASuccessfulOrderCompletesTheEntryAndThePassIsRevoked(t *testing.T) {
	inEachShop(t, func(t *testing.T, shop, suffix string) {
		user := daegi.admit(t, "lee-"+suffix)
		pass := []string{"authorization", "Bearer " + user.ticket(t).Pass}
		send(t, http.MethodGet, shop+"/strict", pass...).assert(t, http.StatusOK, "hello lee-"+suffix)
		send(t, http.MethodPost, shop+"/orders/402", pass...).assert(t, http.StatusPaymentRequired, "")
		// A failed order ends nothing.
		send(t, http.MethodGet, shop+"/strict", pass...).assert(t, http.StatusOK, "hello lee-"+suffix)
		send(t, http.MethodPost, shop+"/orders/201", pass...).assert(t, http.StatusCreated, "")
		must(t, eventually("completed", func() bool { return user.ticket(t).Status == "COMPLETED" }))
		send(t, http.MethodGet, shop+"/strict", pass...).assert(t, http.StatusForbidden, `"PASS_REVOKED"`)
		// Offline, a pass is good until it expires.
		send(t, http.MethodGet, shop+"/checkout", pass...).assert(t, http.StatusOK, "hello lee-"+suffix)
	})
}
