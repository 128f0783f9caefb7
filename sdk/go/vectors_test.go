package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"daegi.io/guard"
)

// Runs the vectors of sdk/vectors, which the guards for other languages run, too.

type vectorFile struct {
	KeySets   map[string]json.RawMessage
	Scenarios []struct {
		Name   string
		Config struct {
			Online                                                   bool
			OnUnavailable                                            string
			ClockSkewSeconds, KeyTTLSeconds, MinFetchIntervalSeconds int64
		}
		Steps []step
	}
	PassSources []request
	Requests    []request
	Responses   []struct {
		Code, Accept, WaitingPage string
		Status                    int
		Headers                   map[string]string
		Body                      any
	}
}

type step struct {
	Now                      int64
	Item, Keys, Pass         string
	Verdict                  json.RawMessage
	Expect                   any
	KeyFetches, OnlineChecks int
}

type request struct {
	Name, Item, Keys, Target, Pass string
	Now                            int64
	Headers                        map[string]string
	Expect                         any
}

var quiet = guard.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

func readVectors(t *testing.T) (vectors vectorFile) {
	t.Helper()
	text, err := os.ReadFile("../vectors/guard.json")
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil || len(vectors.Scenarios) == 0 || len(vectors.PassSources) == 0 || len(vectors.Requests) == 0 || len(vectors.Responses) == 0 {
		t.Fatal("sdk/vectors/guard.json is incomplete", err)
	}
	return vectors
}

func newGuard(t *testing.T, url string, options ...guard.Option) *guard.Guard {
	t.Helper()
	created, err := guard.New(url, append(options, quiet)...)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func seconds(count int64) time.Duration { return time.Duration(count) * time.Second }

func at(now int64) func() time.Time { return func() time.Time { return time.Unix(now, 0) } }

func assertEqual(t *testing.T, actual, expected any) {
	t.Helper()
	if !reflect.DeepEqual(actual, expected) {
		t.Errorf("got %v, expected %v", actual, expected)
	}
}

func TestEveryScenarioHasTheExpectedOutcome(t *testing.T) {
	vectors := readVectors(t)
	for _, scenario := range vectors.Scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			stub, now := startStub(t), int64(0)
			options := []guard.Option{
				guard.WithInternalURL(stub.url),
				guard.WithClockSkew(seconds(scenario.Config.ClockSkewSeconds)),
				guard.WithKeyTTL(seconds(scenario.Config.KeyTTLSeconds)),
				guard.WithMinFetchInterval(seconds(scenario.Config.MinFetchIntervalSeconds)),
				guard.WithClock(func() time.Time { return time.Unix(now, 0) }),
			}
			if scenario.Config.Online {
				options = append(options, guard.WithOnlineChecks())
			}
			if scenario.Config.OnUnavailable == "failOpen" {
				options = append(options, guard.WithOnUnavailable(guard.FailOpen))
			}
			tested := newGuard(t, stub.url, options...)
			for _, step := range scenario.Steps {
				now = step.Now
				stub.set(func(s *stubDaegi) { s.keys, s.verdict = vectors.KeySets[step.Keys], verdict(step) })
				assertEqual(t, outcome(tested, step), step.Expect)
				assertEqual(t, stub.calls(), [2]int{step.KeyFetches, step.OnlineChecks})
			}
		})
	}
}

func verdict(step step) json.RawMessage {
	if !strings.HasPrefix(string(step.Verdict), "{") {
		return nil
	}
	return step.Verdict
}

func outcome(tested *guard.Guard, step step) any {
	entry, err := tested.Check(context.Background(), step.Item, step.Pass)
	if err != nil {
		return refused(err)
	}
	var lane any
	if entry.Lane != "" {
		lane = entry.Lane
	}
	return map[string]any{"entry": map[string]any{
		"userId": entry.UserID, "itemId": entry.ItemID, "passId": entry.PassID, "number": float64(entry.Number), "lane": lane,
		"expiresAt": float64(entry.ExpiresAt), "signatureVerified": entry.SignatureVerified, "token": entry.Token(),
	}}
}

func refused(err error) any {
	var refusal guard.Refusal
	errors.As(err, &refusal)
	return map[string]any{"refused": string(refusal)}
}

func (r request) http() *http.Request {
	made := httptest.NewRequest(http.MethodGet, r.Target, nil)
	for name, value := range r.Headers {
		made.Header.Set(name, value)
	}
	return made
}

func TestAPassIsFoundInEachOfItsSources(t *testing.T) {
	for _, vector := range readVectors(t).PassSources {
		t.Run(vector.Target, func(t *testing.T) { assertEqual(t, guard.FindPass(vector.http(), vector.Item), vector.Pass) })
	}
}

func TestALinkNeitherReplacesNorHidesAValidCookie(t *testing.T) {
	vectors := readVectors(t)
	for _, vector := range vectors.Requests {
		t.Run(vector.Name, func(t *testing.T) {
			stub := startStub(t)
			stub.keys = vectors.KeySets[vector.Keys]
			authorization, err := newGuard(t, stub.url, guard.WithClock(at(vector.Now))).Authorize(vector.http(), vector.Item)
			if err != nil {
				assertEqual(t, refused(err), vector.Expect)
				return
			}
			var keeps any
			if authorization.Keep != "" {
				keeps = authorization.Keep
			}
			entry := authorization.Entry
			assertEqual(t, map[string]any{"userId": entry.UserID, "expiresAt": float64(entry.ExpiresAt), "keeps": keeps}, vector.Expect)
		})
	}
}

func TestARevokedCookieIsReplacedByAValidPassInTheURL(t *testing.T) {
	vectors := readVectors(t)
	for _, vector := range vectors.Requests {
		if vector.Name != "another user's pass" {
			continue
		}
		stub := startStub(t)
		stub.keys, stub.verdict = vectors.KeySets["first"], json.RawMessage(`{"valid":false,"reason":"COMPLETED"}`)
		options := []guard.Option{guard.WithInternalURL(stub.url), guard.WithOnlineChecks(), guard.WithClock(at(vector.Now))}
		_, err := newGuard(t, stub.url, options...).Authorize(vector.http(), vector.Item)
		assertEqual(t, err, error(guard.PassRevoked))
		assertEqual(t, stub.calls(), [2]int{1, 2})
		return
	}
	t.Fatal("the vector is missing")
}

func TestBrowsersAreRedirectedAndOtherClientsGetAProblem(t *testing.T) {
	for _, vector := range readVectors(t).Responses {
		t.Run(vector.Code+" "+vector.Accept, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			guard.Refusal(vector.Code).Write(recorder, vector.Accept, vector.WaitingPage)
			headers := map[string]string{}
			for name, values := range recorder.Header() {
				headers[strings.ToLower(name)] = strings.Join(values, ", ")
			}
			var body any
			if recorder.Body.Len() > 0 {
				if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
					t.Fatal(err)
				}
			}
			assertEqual(t, recorder.Code, vector.Status)
			assertEqual(t, headers, vector.Headers)
			assertEqual(t, body, vector.Body)
		})
	}
}
