package draw

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	readyTimeout = 2 * time.Minute
	// Connections to each pod.
	connections = 64
)

// A fleet is a leader, a standby and two pods with a Redis and a Kafka broker of their own.
type fleet struct {
	t       *testing.T
	http    *http.Client
	pods    []string
	admin   string
	kafka   string
	redis   string
	token   string
	dir     string
	pids    map[string]int
	nextPod atomic.Uint64
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	for _, tool := range []string{"redis-server", "java"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s IS MISSING: the draw of a lobby is not tested.", strings.ToUpper(tool))
			if os.Getenv("CI") == "true" {
				t.FailNow()
			}
			t.SkipNow()
		}
	}
	if os.Getenv("BINARIES") == "" {
		t.Fatal("BINARIES is not set: run infra/test.sh or make draw-test")
	}
	transport := &http.Transport{MaxIdleConnsPerHost: connections}
	f := &fleet{t: t, http: &http.Client{Transport: transport, Timeout: readyTimeout}, token: random(16), dir: t.TempDir(),
		pids: map[string]int{}}
	t.Cleanup(transport.CloseIdleConnections)
	f.redis = freeAddress()
	_, port, _ := net.SplitHostPort(f.redis)
	f.start("redis", exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", f.dir))
	f.kafka = f.startKafka()
	env := append(os.Environ(), "DAEGI_STORE=redis://"+f.redis, "DAEGI_KAFKA="+f.kafka, "DAEGI_ADMIN_TOKEN="+f.token,
		"DAEGI_TICKET_SECRETS=1:"+random(32), "DAEGI_PASS_KEY="+passKey(t))
	f.admin = f.startService(env, "leader", "daegi-scheduler").internal
	f.startService(env, "standby", "daegi-scheduler")
	for _, name := range []string{"pod 1", "pod 2"} {
		f.pods = append(f.pods, f.startService(env, name, "daegi-api").public)
	}
	return f
}

type addresses struct{ public, internal string }

func (f *fleet) startService(env []string, name, binary string) addresses {
	f.t.Helper()
	at := addresses{freeAddress(), freeAddress()}
	command := exec.Command(filepath.Join(os.Getenv("BINARIES"), binary), "--public-addr", at.public, "--internal-addr", at.internal)
	command.Env = env
	f.start(name, command)
	f.eventually(name+" is ready", func() bool {
		response, err := f.http.Get("http://" + at.internal + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return at
}

// start runs a process until the end of the test. Its output is shown if the test fails.
func (f *fleet) start(name string, command *exec.Cmd) {
	f.t.Helper()
	log, err := os.Create(f.log(name))
	must(f.t, err)
	command.Stdout, command.Stderr = log, log
	must(f.t, command.Start())
	f.pids[name] = command.Process.Pid
	f.t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); f.t.Failed() {
			f.t.Logf("log of %s, its end:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

func (f *fleet) log(name string) string { return filepath.Join(f.dir, name+".log") }

// startKafka starts a broker, which stops at the end of its stdin, and returns its address.
func (f *fleet) startKafka() string {
	command := exec.Command("../../kafka/broker.sh", "--stdin", "--data", filepath.Join(f.dir, "kafka"))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	must(f.t, err)
	stdout, err := command.StdoutPipe()
	must(f.t, err)
	must(f.t, command.Start())
	f.t.Cleanup(func() {
		stdin.Close()
		command.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(f.t, err)
	return strings.TrimPrefix(strings.TrimSpace(line), "DAEGI_KAFKA=")
}

// call sends a request, fails the test unless the status is one of `expected`, and decodes the response into `into`.
func (f *fleet) call(method, url string, header http.Header, body, into any, expected ...int) error {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, url, text)
	if err != nil {
		return err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := f.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for _, status := range expected {
		if response.StatusCode == status {
			if into == nil {
				return nil
			}
			return json.Unmarshal(answer, into)
		}
	}
	return fmt.Errorf("%s %s: %d %s", method, url, response.StatusCode, answer)
}

func (f *fleet) adminCall(method, path string, body any) {
	f.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + f.token}}
	must(f.t, f.call(method, "http://"+f.admin+"/internal/admin/v1/"+path, header, body, nil, 200, 201, 204))
}

// line returns the URL of a line at the next pod, as a load balancer does.
func (f *fleet) line(item string) string {
	return "http://" + f.pods[f.nextPod.Add(1)%uint64(len(f.pods))] + "/api/v1/item/" + item + "/waiting-queue"
}

// eventually waits for a condition.
func (f *fleet) eventually(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(readyTimeout); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("not within %s: %s", readyTimeout, what)
		}
	}
}

// peakMemory returns the most memory that a process had resident, in MB; 0 where there is no /proc.
func (f *fleet) peakMemory(name string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.pids[name]))
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseFloat(string(found[1]), 64)
	return kilobytes * 1024 / 1e6
}

// redisMemory returns a field of INFO memory in MB.
func (f *fleet) redisMemory(field string) float64 {
	f.t.Helper()
	connection, err := net.Dial("tcp", f.redis)
	must(f.t, err)
	defer connection.Close()
	fmt.Fprint(connection, "INFO memory\r\n")
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			bytes, err := strconv.ParseFloat(value, 64)
			must(f.t, err)
			return bytes / 1e6
		}
	}
	f.t.Fatalf("INFO memory has no %s", field)
	return 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func random(bytes int) string {
	text := make([]byte, bytes)
	_, _ = rand.Read(text)
	return hex.EncodeToString(text)
}

func passKey(t *testing.T) string {
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// freeAddress returns an address below the ports that the kernel gives to outgoing connections, so that it stays free.
func freeAddress() string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+mathrand.IntN(16_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
}
