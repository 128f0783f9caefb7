package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	timeout = time.Minute
	admin   = "an-admin-token-of-the-test"
)

// A room is a daegi in one process. Its output and that of the proxy are shown if the test fails.
type room struct {
	t                *testing.T
	dir              string
	public, internal string
	process          *exec.Cmd
}

func startRoom(t *testing.T) *room {
	t.Helper()
	if os.Getenv("BINARIES") == "" {
		t.Fatal("BINARIES is not set: run infra/test.sh or make gate-test")
	}
	public, internal := freeAddress(t), freeAddress(t)
	r := &room{t: t, dir: t.TempDir(), public: "http://" + public, internal: "http://" + internal}
	r.process = exec.Command(filepath.Join(os.Getenv("BINARIES"), "daegi"), "--kafka", "off", "--public-addr", public,
		"--internal-addr", internal, "--public-url", r.public, "--tick-ms", "100", "--admin-token", admin)
	start(t, "daegi", r.process)
	eventually(t, "daegi is ready", func() bool {
		response, err := http.Get(r.internal + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return r
}

// start runs a process until the end of the test.
func start(t *testing.T, name string, command *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	must(t, err)
	command.Stdout, command.Stderr = log, log
	must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of %s, its end:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

func (r *room) stop() {
	must(r.t, r.process.Process.Signal(syscall.SIGKILL))
	r.process.Process.Wait()
}

func (r *room) isOrigin(address *url.URL) bool { return address.Scheme+"://"+address.Host == r.public }

func (r *room) call(method, url string, header http.Header, body any, into any) {
	r.t.Helper()
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		must(r.t, err)
		text = bytes.NewReader(encoded)
		header.Set("Content-Type", "application/json")
	}
	request, err := http.NewRequest(method, url, text)
	must(r.t, err)
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	must(r.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(r.t, err)
	if response.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %d %s", method, url, response.StatusCode, answer)
	}
	if into != nil {
		must(r.t, json.Unmarshal(answer, into))
	}
}

// createItem creates an item whose users continue at this address.
func (r *room) createItem(id, address string) {
	r.t.Helper()
	item := r.internal + "/internal/admin/v1/waiting-item/" + id
	authorized := http.Header{"Authorization": {"Bearer " + admin}}
	r.call("POST", item+"/manually", authorized, map[string]any{"itemName": id, "remainCount": 100, "waitingQueueEnabled": true}, nil)
	r.call("PATCH", item+"/policy", authorized, map[string]any{"entryUrl": address + "?pass={pass}"}, nil)
}

type ticket struct {
	Token, Status string
	Pass          string
}

// admit joins a user and returns the pass.
func (r *room) admit(item, user string) string {
	r.t.Helper()
	line := r.public + "/api/v1/item/" + item + "/waiting-queue"
	var held ticket
	r.call("POST", line, http.Header{"User-Id": {user}}, map[string]any{}, &held)
	eventually(r.t, user+" is admitted", func() bool {
		r.call("GET", line+"/"+held.Token, http.Header{}, nil, &held)
		return held.Status == "ENTERABLE"
	})
	return held.Pass
}

// complete ends the entry of a pass, as the order service does, and returns whether it was live.
func (r *room) complete(pass string) bool {
	var completed struct{ Released bool }
	r.call("POST", r.internal+"/internal/v1/item/concert/entry/complete", http.Header{}, map[string]string{"pass": pass}, &completed)
	return completed.Released
}

// startProxy starts a proxy with its snippet, whose names are replaced by the addresses of the test.
func (r *room) startProxy(name string, shop *shop) site {
	r.t.Helper()
	command := map[string]string{"nginx": "/usr/sbin/nginx", "haproxy": "/usr/sbin/haproxy", "caddy": "/usr/bin/caddy"}[name]
	if found, err := exec.LookPath(name); err == nil {
		command = found
	}
	if _, err := os.Stat(command); err != nil {
		r.t.Logf("%s IS MISSING: its gate is not tested.", strings.ToUpper(name))
		if os.Getenv("CI") == "true" && name != "caddy" {
			r.t.FailNow()
		}
		r.t.SkipNow()
	}
	listen := freeAddress(r.t)
	internal := strings.TrimPrefix(r.internal, "http://")
	replace := strings.NewReplacer(":8000", ":"+port(listen), "listen 8000", "listen "+listen, "daegi-api:8081", internal,
		"10.0.0.7:8081", internal, "shop:3000", shop.address)
	snippet := func(file string) string {
		text, err := os.ReadFile(filepath.Join("../../gate", name, file))
		must(r.t, err)
		return replace.Replace(string(text))
	}
	write := func(file, text string) string {
		path := filepath.Join(r.dir, file)
		must(r.t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	var arguments []string
	switch name {
	case "nginx":
		main := "daemon off;\nerror_log stderr;\npid " + r.dir + "/nginx.pid;\nevents {}\nhttp {\naccess_log off;\n"
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			main += kind + "_temp_path " + r.dir + "/" + kind + ";\n"
		}
		arguments = []string{"-p", r.dir, "-c", write("nginx.conf", main+snippet("daegi.conf")+"}\n")}
	case "haproxy":
		write("daegi-gate.lua", snippet("daegi-gate.lua"))
		arguments = []string{"-f", write("haproxy.cfg", snippet("haproxy.cfg"))}
	case "caddy":
		arguments = []string{"run", "--adapter", "caddyfile", "--config", write("Caddyfile", snippet("Caddyfile"))}
	}
	process := exec.Command(command, arguments...)
	process.Dir = r.dir
	process.Env = append(os.Environ(), "HOME="+r.dir)
	start(r.t, name, process)
	eventually(r.t, name+" is ready", func() bool {
		response, err := http.Get("http://" + listen + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return site("http://" + listen)
}

// A shop is the application: it serves everything and knows nothing of daegi.
type shop struct {
	address string
	lock    sync.Mutex
	guarded int
	header  http.Header
	uri     string
	body    string
}

func startShop(t *testing.T) *shop {
	s := &shop{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		// It reads paths as generously as applications do.
		if strings.HasPrefix(path.Clean("/"+request.URL.Path)+"/", "/checkout/") {
			s.lock.Lock()
			s.guarded++
			s.header, s.uri, s.body = request.Header, request.RequestURI, string(body)
			s.lock.Unlock()
			fmt.Fprint(w, "secret")
			return
		}
		fmt.Fprint(w, "public")
	}))
	t.Cleanup(server.Close)
	s.address = server.Listener.Addr().String()
	return s
}

func (s *shop) last(header string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return strings.Join(s.header.Values(header), ", ")
}

func (s *shop) lastURI() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.uri
}

func (s *shop) lastBody() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.body
}

// secrets returns how many requests reached the guarded part.
func (s *shop) secrets() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.guarded
}

// A site is the origin of a proxy.
type site string

func (s site) isOrigin(address *url.URL) bool { return address.Scheme+"://"+address.Host == string(s) }

// path returns the path of an address of the site.
func (s site) path(address string) site { return site(strings.TrimPrefix(address, string(s))) }

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) location() string { return a.header.Get("Location") }

func (a answer) expect(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.body, body) {
		t.Fatalf("%d %q, expected %d %q", a.status, a.body, status, body)
	}
}

func (s site) get(t *testing.T, path string, header http.Header) answer {
	t.Helper()
	return s.request(t, "GET", path, header, "")
}

// request sends the path as it is, follows no redirect and keeps no cookie.
func (s site) request(t *testing.T, method, path string, header http.Header, body string) answer {
	t.Helper()
	request, err := http.NewRequest(method, string(s), strings.NewReader(body))
	must(t, err)
	raw, query, _ := strings.Cut(path, "?")
	decoded, err := url.PathUnescape(raw)
	must(t, err)
	request.URL.Path, request.URL.RawPath, request.URL.RawQuery = decoded, raw, query
	for name, values := range header {
		request.Header[name] = values
	}
	return send(t, &http.Client{}, request)
}

func send(t *testing.T, client *http.Client, request *http.Request) answer {
	t.Helper()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Timeout = timeout
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

func cookie(item, pass string) http.Header {
	return http.Header{"Cookie": {"daegi-pass-" + item + "=" + pass}}
}

// A browser keeps cookies and runs no scripts.
type browser struct{ http.Client }

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &browser{http.Client{Jar: jar}}
}

func (b *browser) get(t *testing.T, address site) answer {
	t.Helper()
	return b.send(t, "GET", string(address), "")
}

func (b *browser) post(t *testing.T, address site, body string) answer {
	t.Helper()
	return b.send(t, "POST", string(address), body)
}

func (b *browser) send(t *testing.T, method, address, body string) answer {
	t.Helper()
	request, err := http.NewRequest(method, address, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Accept", acceptHTML)
	return send(t, &b.Client, request)
}

// pass returns the pass that the browser keeps for the site.
func (b *browser) pass(t *testing.T, address site) string {
	t.Helper()
	site, err := url.Parse(string(address))
	must(t, err)
	for _, cookie := range b.Jar.Cookies(site) {
		if cookie.Name == "daegi-pass-concert" {
			return cookie.Value
		}
	}
	t.Fatal("the browser has no pass")
	return ""
}

var enterLink = regexp.MustCompile(`<a class="button" href="([^"]+)">`)

// waitWithoutScripts joins with the form of the waiting page and reloads it until it links to the entry.
func (b *browser) waitWithoutScripts(t *testing.T, page *url.URL) site {
	t.Helper()
	joined := b.send(t, "POST", page.String(), "")
	if joined.status != http.StatusSeeOther {
		t.Fatalf("the form was answered with %d %s", joined.status, joined.body)
	}
	page, err := page.Parse(joined.location())
	must(t, err)
	var link string
	eventually(t, "the page links to the entry", func() bool {
		found := enterLink.FindStringSubmatch(b.send(t, "GET", page.String(), "").body)
		if found == nil {
			return false
		}
		link = html.UnescapeString(found[1])
		return true
	})
	return site(link)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
