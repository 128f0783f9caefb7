package guard

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Refusal is the reason why a request is refused: the machine-readable code of the problem.
type Refusal string

const (
	// PassMissing means that the request carries no pass.
	PassMissing Refusal = "PASS_MISSING"
	// PassInvalid means malformed, forged, or signed with a key that daegi does not publish.
	PassInvalid Refusal = "PASS_INVALID"
	// PassExpired means that the pass has expired, and its entry with it.
	PassExpired Refusal = "PASS_EXPIRED"
	// PassNotYetValid means that `iat` or `nbf` is in the future.
	PassNotYetValid Refusal = "PASS_NOT_YET_VALID"
	// PassOtherItem means that the pass belongs to another item.
	PassOtherItem Refusal = "PASS_OTHER_ITEM"
	// PassRevoked means that the entry was completed, given back or ended by an operator.
	PassRevoked Refusal = "PASS_REVOKED"
	// Unavailable means that daegi was needed and is unreachable.
	Unavailable Refusal = "UNAVAILABLE"
	// ItemNotFound means that the request names no item.
	ItemNotFound Refusal = "ITEM_NOT_FOUND"
)

// Error returns the human-readable reason.
func (r Refusal) Error() string {
	switch r {
	case PassMissing:
		return "there is no pass, please wait in line first"
	case PassInvalid:
		return "the pass was not issued by the waiting room"
	case PassExpired:
		return "the pass has expired, please join the line again"
	case PassNotYetValid:
		return "the pass is not valid yet"
	case PassOtherItem:
		return "the pass is for another item"
	case PassRevoked:
		return "the pass was used or given back, please join the line again"
	case ItemNotFound:
		return "there is no such item"
	default:
		return "the waiting room cannot be asked right now"
	}
}

// Status returns the HTTP status for clients other than browsers.
func (r Refusal) Status() int {
	switch r {
	case PassMissing, PassInvalid, PassExpired, PassNotYetValid:
		return http.StatusUnauthorized
	case PassOtherItem, PassRevoked:
		return http.StatusForbidden
	case ItemNotFound:
		return http.StatusNotFound
	default:
		return http.StatusServiceUnavailable
	}
}

// ShouldRejoin returns whether joining the line resolves the refusal.
func (r Refusal) ShouldRejoin() bool {
	return r.Status() == http.StatusUnauthorized || r.Status() == http.StatusForbidden
}

type problem struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Detail      string `json:"detail"`
	WaitingPage string `json:"waitingPage,omitempty"`
}

// Write writes the response: browsers are redirected to the waiting page, other clients get an RFC 9457 problem. accept is the
// header of the request.
func (r Refusal) Write(w http.ResponseWriter, accept, waitingPage string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "accept")
	if strings.Contains(accept, "text/html") && r.ShouldRejoin() {
		header.Set("Location", waitingPage)
		// 303, so that the browser loads the page with GET whatever the request's method was.
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	header.Set("Content-Type", "application/problem+json")
	r.hint(header)
	body := problem{"about:blank", http.StatusText(r.Status()), r.Status(), string(r), r.Error(), ""}
	if r.ShouldRejoin() {
		body.WaitingPage = waitingPage
	}
	w.WriteHeader(r.Status())
	// The client may have disconnected.
	_ = json.NewEncoder(w).Encode(body)
}

// RFC 9110 requires WWW-Authenticate on every 401.
func (r Refusal) hint(header http.Header) {
	switch {
	case r == PassMissing:
		header.Set("WWW-Authenticate", "Bearer")
	case r.Status() == http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	case r.Status() == http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	}
}
