package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const adminToken = "admin-token-of-the-guard-tests"

// daegiProcess is a real daegi process with helpers for tests.
type daegiProcess struct{ public, internal string }

func startDaegi() (daegi daegiProcess, stop func(), err error) {
	binary, err := binary()
	if err != nil {
		return daegi, nil, err
	}
	public, internal := freeAddress(), freeAddress()
	daegi = daegiProcess{"http://" + public, "http://" + internal}
	command := exec.Command(binary, "--store", "memory", "--kafka", "off", "--log", "error", "--tick-ms", "100", "--lease-ms", "500",
		"--admin-token", adminToken, "--public-addr", public, "--internal-addr", internal)
	command.Env, command.Stderr = []string{}, os.Stderr
	if err = command.Start(); err != nil {
		return daegi, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	stop = func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
		}
	}
	err = eventually("daegi is ready", func() bool { return statusOf(daegi.internal+"/readyz") == http.StatusOK })
	if err == nil {
		err = daegi.admin(http.MethodPost, "concert/manually", `{"itemName":"Friday","remainCount":100,"waitingQueueEnabled":true}`)
	}
	if err == nil {
		err = daegi.admin(http.MethodPatch, "concert/policy", `{"tokensPerTick":10}`)
	}
	if err != nil {
		stop()
	}
	return daegi, stop, err
}

func binary() (string, error) {
	path := os.Getenv("DAEGI_BIN")
	if path == "" {
		target := os.Getenv("CARGO_TARGET_DIR")
		if target == "" {
			target = "../../../target"
		}
		path = filepath.Join(target, "debug", "daegi")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing: cargo test --workspace builds it", path)
	}
	return path, nil
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Retries until the condition holds or 20 s are over. Tests never sleep for a fixed time.
func eventually(what string, holds func() bool) error {
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within 20 s", what)
		}
	}
	return nil
}

func statusOf(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func (d daegiProcess) admin(method, path, body string) error {
	request, err := http.NewRequest(method, d.internal+"/internal/admin/v1/waiting-item/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("authorization", "Bearer "+adminToken)
	request.Header.Set("content-type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %d %s", path, response.StatusCode, text)
	}
	return nil
}

// admittedUser is a user with a ticket.
type admittedUser struct{ ticketURL string }

type ticket struct{ Token, Status, Pass string }

// Joins as this user and waits until they are admitted.
func (d daegiProcess) admit(t *testing.T, user string) admittedUser {
	t.Helper()
	line := d.public + "/api/v1/item/concert/waiting-queue"
	request, err := http.NewRequest(http.MethodPost, line, nil)
	must(t, err)
	request.Header.Set("user-id", user)
	joined := admittedUser{line + "/" + decoded(t, request).Token}
	must(t, eventually("the ticket is ENTERABLE", func() bool { return joined.ticket(t).Status == "ENTERABLE" }))
	return joined
}

func (u admittedUser) ticket(t *testing.T) ticket {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, u.ticketURL, nil)
	must(t, err)
	return decoded(t, request)
}

func decoded(t *testing.T, request *http.Request) (decoded ticket) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	must(t, err)
	must(t, json.Unmarshal(text.Bytes(), &decoded))
	return decoded
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
