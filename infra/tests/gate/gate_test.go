// Package gate tests the snippets of infra/gate with the real proxies, in front of a small application that does not know daegi.
package gate

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const acceptHTML = "text/html,application/xhtml+xml"

// visit follows one user through a proxy: wait, enter, shop, complete.
func visit(t *testing.T, proxy string) {
	room := startRoom(t)
	shop := startShop(t)
	site := room.startProxy(proxy, shop)
	room.createItem("concert", string(site)+"/checkout/start")
	room.createItem("play", string(site)+"/play")

	t.Run("paths that are not guarded pass", func(t *testing.T) {
		for _, path := range []string{"/", "/healthz", "/assets/logo.svg"} {
			site.get(t, path, nil).expect(t, http.StatusOK, "public")
		}
	})

	t.Run("a browser without a pass waits, enters where it wanted to go, and shops", func(t *testing.T) {
		browser := newBrowser(t)
		refused := browser.get(t, site+"/checkout/cart?seat=A%201&row=2")
		refused.expect(t, http.StatusFound, "")
		page, err := url.Parse(refused.location())
		must(t, err)
		if shown := page.Scheme + "://" + page.Host; shown != room.public || page.Path != "/wait/concert" {
			t.Fatalf("redirected to %s", page)
		}
		if back := page.Query().Get("return"); back != "/checkout/cart?seat=A%201&row=2" {
			t.Fatalf("the way back is %q", back)
		}
		address := browser.waitWithoutScripts(t, page)
		if !strings.HasPrefix(string(address), string(site)+"/checkout/cart?seat=A%201&row=2&pass=") {
			t.Fatalf("the page continues at %s", address)
		}

		moved := browser.get(t, address)
		moved.expect(t, http.StatusFound, "")
		if moved.location() != "/checkout/cart?seat=A%201&row=2" {
			t.Fatalf("the address was cleaned to %s", moved.location())
		}
		cookie := moved.header.Get("Set-Cookie")
		for _, part := range []string{"daegi-pass-concert=", "HttpOnly", "SameSite=Lax", "Path=/"} {
			if !strings.Contains(cookie, part) {
				t.Fatalf("the cookie %q has no %s", cookie, part)
			}
		}
		cart := browser.get(t, site+site.path(moved.location()))
		cart.expect(t, http.StatusOK, "secret")
		user := shop.last("daegi-user")
		if !strings.HasPrefix(user, "web-") || shop.last("daegi-lane") != "standard" || shop.last("daegi-number") == "" {
			t.Fatalf("the application received %q, lane %q", user, shop.last("daegi-lane"))
		}
		if uri := shop.lastURI(); uri != "/checkout/cart?seat=A%201&row=2" {
			t.Fatalf("the application received %s", uri)
		}

		order := browser.post(t, site+"/checkout/order", "two tickets")
		order.expect(t, http.StatusOK, "secret")
		if shop.lastBody() != "two tickets" {
			t.Fatalf("the application received the body %q", shop.lastBody())
		}
		if !room.complete(browser.pass(t, site)) {
			t.Fatal("the entry was not completed")
		}

		stripped := newBrowser(t)
		stripped.get(t, site+"/checkout/cart").expect(t, http.StatusFound, "")
	})

	t.Run("there is no way through without a valid pass of the item", func(t *testing.T) {
		good, other := room.admit("concert", "kim"), room.admit("play", "kim")
		site.get(t, "/checkout/cart", cookie("concert", good)).expect(t, http.StatusOK, "secret")
		if shop.last("daegi-user") != "kim" {
			t.Fatalf("the application received %q", shop.last("daegi-user"))
		}
		dot := strings.LastIndex(good, ".")
		forged := good[:dot+1] + strings.Repeat("A", len(good)-dot-1)
		before := shop.secrets()
		for name, header := range map[string]http.Header{
			"no pass":                 {},
			"a forged pass":           cookie("concert", forged),
			"a pass of another item":  cookie("concert", other),
			"the cookie of another":   cookie("play", other),
			"no text":                 cookie("concert", ""),
			"headers of the gate":     {"Daegi-User": {"kim"}, "Daegi-Number": {"1"}, "Daegi-Lane": {"standard"}},
			"another original":        {"X-Original-Uri": {"/assets/logo.svg"}, "X-Forwarded-Uri": {"/healthz"}},
			"another original method": {"X-Original-Method": {"OPTIONS"}, "X-Forwarded-Method": {"OPTIONS"}},
			"a preflight":             {"Origin": {"https://evil.example"}, "Access-Control-Request-Method": {"POST"}},
		} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
				program := site.request(t, method, "/checkout/cart", header, "")
				if program.status != http.StatusUnauthorized && program.status != http.StatusForbidden {
					t.Errorf("%s, %s: %d", name, method, program.status)
				}
				if method != "HEAD" && !strings.HasPrefix(program.header.Get("Content-Type"), "application/problem+json") {
					t.Errorf("%s, %s: %s", name, method, program.header.Get("Content-Type"))
				}
				header := header.Clone()
				header.Set("Accept", acceptHTML)
				if browser := site.request(t, method, "/checkout/cart", header, ""); browser.status != http.StatusFound {
					t.Errorf("%s, %s, a browser: %d", name, method, browser.status)
				}
			}
		}
		for _, path := range []string{"/checkout/", "//checkout/cart", "/./checkout/cart", "/assets/../checkout/cart", "/%63heckout/cart",
			"/assets/..%2fcheckout/cart", "/assets/%2e%2e/checkout/cart", "/checkout/../checkout/cart", "/checkout/cart?x=/healthz"} {
			if answer := site.get(t, path, nil); answer.status == http.StatusOK {
				t.Errorf("%s: %d %s", path, answer.status, answer.body)
			}
		}
		if after := shop.secrets(); after != before {
			t.Errorf("%d requests reached the guarded part of the application", after-before)
		}
	})

	t.Run("an address cannot redirect to another site", func(t *testing.T) {
		good := room.admit("concert", "lee")
		for _, path := range []string{"//evil.example/checkout/", "/checkout//evil.example", "/checkout/..//evil.example"} {
			header := http.Header{"Accept": {acceptHTML}}
			for _, path := range []string{path, path + "?pass=" + good} {
				location := site.request(t, "GET", path, header, "").location()
				to, err := url.Parse(location)
				if err != nil || strings.HasPrefix(location, "//") || (to.Host != "" && !room.isOrigin(to) && !site.isOrigin(to)) {
					t.Errorf("%s leads to %s", path, location)
				}
			}
		}
	})

	t.Run("client headers do not name another user", func(t *testing.T) {
		header := cookie("concert", room.admit("concert", "park"))
		header.Set("daegi-user", "kim")
		header.Set("daegi-lane", "members")
		site.get(t, "/checkout/cart", header).expect(t, http.StatusOK, "secret")
		if shop.last("daegi-user") != "park" || shop.last("daegi-lane") != "standard" {
			t.Errorf("the application received %q, lane %q", shop.last("daegi-user"), shop.last("daegi-lane"))
		}
	})

	t.Run("a gate that is down refuses", func(t *testing.T) {
		header := cookie("concert", room.admit("concert", "choi"))
		room.stop()
		if answer := site.get(t, "/checkout/cart", header); answer.status < 500 {
			t.Errorf("%d %s", answer.status, answer.body)
		}
		site.get(t, "/healthz", nil).expect(t, http.StatusOK, "public")
	})
}

func TestNginx(t *testing.T)   { visit(t, "nginx") }
func TestHAProxy(t *testing.T) { visit(t, "haproxy") }
func TestCaddy(t *testing.T)   { visit(t, "caddy") }
