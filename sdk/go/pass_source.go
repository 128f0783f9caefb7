package guard

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// foundPasses are the pass in the URL and the one in cookie or headers; empty if there is none.
type foundPasses struct{ inURL, stored string }

// FindPass returns the first pass of a request for this item, or an empty string.
//
// Sources, in this order: the header `daegi-pass`, the query parameter `pass` (as in an item's `entryUrl`), the guard's cookie,
// `Authorization: Bearer`. The bearer token is last because a service may use it for its own authentication. If both URL and
// cookie carry a pass, [Guard.Authorize] decides.
func FindPass(r *http.Request, item string) string {
	found := findPasses(r, item)
	if found.inURL != "" {
		return found.inURL
	}
	return found.stored
}

func findPasses(r *http.Request, item string) foundPasses {
	if header := r.Header.Get("daegi-pass"); header != "" {
		return foundPasses{stored: header}
	}
	found := foundPasses{inURL: fromQuery(r.URL.RawQuery), stored: fromCookie(r.Header.Values("Cookie"), item)}
	if found.inURL == "" && found.stored == "" {
		found.stored = fromBearer(r.Header.Get("Authorization"))
	}
	return found
}

// A pass contains no characters that need URL escaping.
func fromQuery(query string) string {
	for _, pair := range strings.Split(query, "&") {
		if pass, found := strings.CutPrefix(pair, "pass="); found {
			return pass
		}
	}
	return ""
}

func fromCookie(headers []string, item string) string {
	for _, header := range headers {
		for _, pair := range strings.Split(header, ";") {
			name, pass, _ := strings.Cut(pair, "=")
			if pass = strings.TrimSpace(pass); strings.TrimSpace(name) == cookieName(item) && pass != "" {
				return pass
			}
		}
	}
	return ""
}

func fromBearer(header string) string {
	scheme, pass, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(pass)
}

// One cookie per item, because a user may have entries of several items. Item ids are valid in cookie names.
func cookieName(item string) string { return "daegi-pass-" + item }

// Returns the Set-Cookie header that stores a pass in the browser until it expires, unreadable to scripts and other sites.
func passCookie(entry Entry, pass string, now time.Time, https bool) string {
	seconds := max(0, entry.ExpiresAt-now.Unix())
	secure := ""
	if https {
		secure = "; Secure"
	}
	return fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s", cookieName(entry.ItemID), pass, seconds, secure)
}
