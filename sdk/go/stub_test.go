package guard_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// stubDaegi has the endpoints that a guard calls: public keys, online checks, completions.
type stubDaegi struct {
	url string

	mutex sync.Mutex
	// Nil: responds with 503.
	keys, verdict json.RawMessage
	// If set, the response with keys waits until it is closed.
	beforeKeys               chan struct{}
	keyFetches, onlineChecks int
	completed                []string
}

func startStub(t *testing.T) *stubDaegi {
	stub := &stubDaegi{}
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	stub.url = server.URL
	return stub
}

func (s *stubDaegi) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/.well-known/jwks.json":
		s.keyFetches++
		if wait := s.beforeKeys; wait != nil {
			s.mutex.Unlock()
			<-wait
			s.mutex.Lock()
		}
		send(w, s.keys)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/entry/verify"):
		s.onlineChecks++
		send(w, s.verdict)
	case r.Method == http.MethodPost && r.URL.Path == "/internal/v1/item/concert/entry/complete":
		s.completed = append(s.completed, body.Token)
		send(w, json.RawMessage(`{"released":true}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func send(w http.ResponseWriter, body json.RawMessage) {
	if body == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(body)
}

func (s *stubDaegi) set(change func(*stubDaegi)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s)
}

func (s *stubDaegi) calls() [2]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return [2]int{s.keyFetches, s.onlineChecks}
}
