package draw

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	item = "opening"
	// One of so many users leaves the lobby, and so many more join after the opening.
	share = 50
	// Ticks that admit all users.
	ticks = 5
)

type ticket struct {
	Token      string
	Status     string
	CohortRank *uint64
	user       string
	number     uint64
	hasLeft    bool
}

// A lobby joins over HTTP, a fiftieth of it leaves, the line opens with a draw, and others join late. Everything that the record
// of the draw says is recomputed from the tokens of the users, and the order of all admissions is compared with the permutation.
// PEOPLE is the size of the lobby.
func TestADrawnLobbyIsAdmittedInThePublishedOrder(t *testing.T) {
	people := 3000
	if text := os.Getenv("PEOPLE"); text != "" {
		var err error
		people, err = strconv.Atoi(text)
		must(t, err)
	}
	f := startFleet(t)
	quota := (people+people/share)/ticks + 1
	f.adminCall("POST", "waiting-item", map[string]any{"itemId": item, "itemName": "A concert", "remainCount": 10 * people,
		"policy": map[string]any{"tokensPerTick": quota, "graceSeconds": 0, "passTtlSeconds": 3600}})
	plan := func(opensAt time.Time) {
		f.adminCall("PATCH", "waiting-item/"+item+"/policy",
			map[string]any{"opening": map[string]any{"opensAt": opensAt.UTC().Format("2006-01-02T15:04:05.000Z"), "order": "draw"}})
	}
	plan(time.Now().Add(time.Hour))

	lobby := timed(t, fmt.Sprintf("%d users joined the lobby", people), func() []*ticket { return f.join("early", people) })
	f.each(len(lobby)/share, func(index int) error {
		gone := lobby[index*share+share/2]
		gone.hasLeft = true
		return f.call("DELETE", f.line(item)+"/"+gone.Token, nil, nil, nil, http.StatusNoContent)
	})
	committed := f.record("")
	if committed.State != "COMMITTED" || !holds(CheckRecord(committed, "")) {
		t.Fatalf("the record before the draw: %+v", committed)
	}

	opensAt := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	plan(opensAt)
	f.eventually("a poll has a rank", func() bool {
		var polled ticket
		must(t, f.call("GET", f.line(item)+"/"+lobby[0].Token, nil, nil, &polled, http.StatusOK))
		return polled.CohortRank != nil
	})
	polled := time.Since(opensAt)
	late := f.join("late", people/share)

	// Public views of a line may be older than tickets.
	var record Record
	f.eventually("the draw is published", func() bool {
		record = f.record("")
		return record.State == "DRAWN"
	})
	first := f.checkRecord(committed, record, lobby)
	rank := func(one *ticket) uint64 { return Rank(*record.Seed, *record.CohortSize, one.number-first) }
	ranks := map[uint64]bool{}
	for _, one := range lobby {
		ranks[rank(one)] = true
	}
	if len(ranks) != len(lobby) {
		t.Errorf("%d users have %d ranks", len(lobby), len(ranks))
	}
	timed(t, "all tickets were polled", func() struct{} {
		f.checkRanks(lobby, rank)
		return struct{}{}
	})

	order := slices.DeleteFunc(slices.Clone(lobby), func(one *ticket) bool { return one.hasLeft })
	slices.SortFunc(order, func(a, b *ticket) int { return int(rank(a)) - int(rank(b)) })
	slices.SortFunc(late, func(a, b *ticket) int { return int(a.number) - int(b.number) })
	openedAt, admittedAt := f.checkEvents(record, append(order, late...))
	t.Logf("opened %d ms after opensAt by the leader's clock, in %d ms; a poll had its rank %d ms after opensAt",
		openedAt.Sub(opensAt).Milliseconds(), f.openingMs(), polled.Milliseconds())
	t.Logf("all admitted %.1f s after the opening, %d per tick", admittedAt.Sub(openedAt).Seconds(), quota)
	for _, name := range []string{"leader", "standby", "pod 1", "pod 2"} {
		t.Logf("peak memory of %s: %.0f MB", name, f.peakMemory(name))
	}
	t.Logf("memory of Redis: %.0f MB, peak %.0f MB", f.redisMemory("used_memory"), f.redisMemory("used_memory_peak"))
}

// timed logs how long a step took.
func timed[T any](t *testing.T, what string, step func() T) T {
	t.Helper()
	started := time.Now()
	result := step()
	t.Logf("%s in %.1f s", what, time.Since(started).Seconds())
	return result
}

// each calls a function for each index over all connections, and fails the test on an error.
func (f *fleet) each(count int, call func(index int) error) {
	f.t.Helper()
	indices := make(chan int)
	errors := make(chan error, connections*len(f.pods))
	var workers sync.WaitGroup
	for range cap(errors) {
		workers.Go(func() {
			var failure error
			for index := range indices {
				if failure == nil {
					failure = call(index)
				}
			}
			errors <- failure
		})
	}
	for index := range count {
		indices <- index
	}
	close(indices)
	workers.Wait()
	close(errors)
	for err := range errors {
		must(f.t, err)
	}
}

// join joins new users and returns their tickets. Numbers are distinct.
func (f *fleet) join(prefix string, count int) []*ticket {
	f.t.Helper()
	tickets := make([]*ticket, count)
	f.each(count, func(index int) error {
		joined := &ticket{user: fmt.Sprintf("%s-%d", prefix, index)}
		tickets[index] = joined
		if err := f.call("POST", f.line(item), http.Header{"User-Id": {joined.user}}, nil, joined, http.StatusCreated); err != nil {
			return err
		}
		number, lane, ok := tokenFields(joined.Token, item)
		if joined.number = number; !ok || lane != 0 || joined.Status != "WAITING" {
			return fmt.Errorf("unexpected ticket: %+v", joined)
		}
		return nil
	})
	numbers := map[uint64]bool{}
	for _, one := range tickets {
		numbers[one.number] = true
	}
	if len(numbers) != count {
		f.t.Fatalf("%d users have %d numbers", count, len(numbers))
	}
	return tickets
}

func (f *fleet) record(token string) (record Record) {
	f.t.Helper()
	query := ""
	if token != "" {
		query = "?token=" + token
	}
	must(f.t, f.call("GET", f.line(item)+"/draw"+query, nil, nil, &record, http.StatusOK))
	return record
}

// checkRecord compares the record with the tokens of the users: the cohort, its root and single proofs. It returns the first
// number of the cohort.
func (f *fleet) checkRecord(committed, record Record, lobby []*ticket) uint64 {
	f.t.Helper()
	if !holds(CheckRecord(record, "")) || record.Commitment != committed.Commitment {
		f.t.Fatalf("the record does not hold: %+v", CheckRecord(record, ""))
	}
	byNumber := slices.Clone(lobby)
	slices.SortFunc(byNumber, func(a, b *ticket) int { return int(a.number) - int(b.number) })
	first, last := byNumber[0].number, byNumber[len(byNumber)-1].number
	if *record.CohortFirst != first || *record.CohortSize != last-first+1 {
		f.t.Fatalf("the cohort begins at %d with %d numbers, the lobby had %d to %d", *record.CohortFirst, *record.CohortSize, first, last)
	}
	leaves := make([]Hash, *record.CohortSize)
	for _, one := range lobby {
		if !one.hasLeft {
			leaves[one.number-first] = sha256.Sum256([]byte(one.Token))
		}
	}
	if Root(leaves) != *record.CohortRoot {
		f.t.Error("the root is not that of the tokens")
	}
	for _, one := range []*ticket{lobby[0], lobby[len(lobby)/2], lobby[len(lobby)-1]} {
		if proof := f.record(one.Token); proof.Ticket == nil || !holds(CheckRecord(proof, one.Token)) {
			f.t.Errorf("the proof of %s does not hold: %+v", one.user, proof)
		}
	}
	return first
}

// checkRanks polls all tickets and compares their ranks.
func (f *fleet) checkRanks(lobby []*ticket, rank func(*ticket) uint64) {
	f.t.Helper()
	f.each(len(lobby), func(index int) error {
		one := lobby[index]
		if one.hasLeft {
			return nil
		}
		var polled ticket
		if err := f.call("GET", f.line(item)+"/"+one.Token, nil, nil, &polled, http.StatusOK); err != nil {
			return err
		}
		if polled.CohortRank == nil || *polled.CohortRank != rank(one)+1 {
			return fmt.Errorf("%s has rank %d, the ticket says %+v", one.user, rank(one)+1, polled)
		}
		return nil
	})
}

// checkEvents reads events until the line was opened and all users were admitted, and compares the order. It returns the times of the
// opening and of the last admission. All events of an item have one key, so that each topic has them in one partition.
func (f *fleet) checkEvents(record Record, expected []*ticket) (openedAt, admittedAt time.Time) {
	f.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.kafka), kgo.ConsumeTopics("line.opened", "token.activated"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(f.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), readyTimeout)
	defer cancel()
	seen, admitted := map[string]bool{}, 0
	for admitted < len(expected) || openedAt.IsZero() {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			f.t.Fatalf("%d of %d admissions, then: %v", admitted, len(expected), err)
		}
		for _, message := range fetches.Records() {
			var event struct {
				EventID, UserID, Token string
				Number                 uint64
				ActivatedAt, OpenedAt  time.Time
				Draw                   struct{ Seed Hash }
			}
			must(f.t, json.Unmarshal(message.Value, &event))
			// A repeated event has the same id: delivery is at least once.
			if seen[event.EventID] {
				continue
			}
			seen[event.EventID] = true
			if message.Topic == "line.opened" {
				if !openedAt.IsZero() || event.Draw.Seed != *record.Seed {
					f.t.Fatalf("the line opened twice or with another seed: %s", message.Value)
				}
				openedAt = event.OpenedAt
				continue
			}
			if admitted == len(expected) {
				f.t.Fatalf("%s was admitted in addition", event.UserID)
			}
			next := expected[admitted]
			if event.Number != next.number || event.UserID != next.user || event.Token != next.Token {
				f.t.Fatalf("admission %d is number %d, %s, expected number %d, %s", admitted+1, event.Number, event.UserID, next.number, next.user)
			}
			admittedAt = event.ActivatedAt
			admitted++
		}
	}
	f.t.Logf("all %d admissions are in the published order", admitted)
	return openedAt, admittedAt
}

// openingMs returns how long the opening took, from the log of the replica that led.
func (f *fleet) openingMs() int {
	f.t.Helper()
	var found [][]byte
	f.eventually("the leader logs the opening", func() bool {
		leader, _ := os.ReadFile(f.log("leader"))
		standby, _ := os.ReadFile(f.log("standby"))
		found = regexp.MustCompile(`line opened.*elapsed_ms\D+(\d+)`).FindSubmatch(append(leader, standby...))
		return found != nil
	})
	elapsed, err := strconv.Atoi(string(found[1]))
	must(f.t, err)
	return elapsed
}

func holds(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(check Check) bool { return !check.OK })
}
