package draw

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

type vectors struct {
	Permutations []struct {
		Seed         Hash
		Size         uint64
		IndexAndRank [][2]uint64
	}
	Trees []struct {
		Leaves []Hash
		Root   Hash
		Paths  []struct {
			Index uint64
			Path  []Hash
		}
	}
	Commitments []struct{ Reveal, Commitment Hash }
	Seeds       []struct {
		ItemID             string
		Reveal, CohortRoot Hash
		Beacon             *Hash
		Seed               Hash
	}
	Records []struct {
		Name   string
		Token  string
		Record Record
		Checks []Check
	}
}

func load(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("../../../sdk/vectors/draw.json")
	if err != nil {
		t.Fatal(err)
	}
	var all vectors
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Permutations) < 10 || len(all.Trees) < 10 || len(all.Commitments) < 3 || len(all.Seeds) < 3 || len(all.Records) < 30 {
		t.Fatal("the vectors are incomplete")
	}
	return all
}

func TestPermutations(t *testing.T) {
	for _, c := range load(t).Permutations {
		for _, pair := range c.IndexAndRank {
			if rank := Rank(c.Seed, c.Size, pair[0]); rank != pair[1] {
				t.Errorf("index %d of %d has rank %d, expected %d", pair[0], c.Size, rank, pair[1])
			}
		}
	}
}

func TestTrees(t *testing.T) {
	for _, c := range load(t).Trees {
		size := uint64(len(c.Leaves))
		if Root(c.Leaves) != c.Root {
			t.Errorf("wrong root of %d leaves", size)
		}
		for _, p := range c.Paths {
			leaf := c.Leaves[p.Index]
			if !VerifyPath(leaf, p.Index, size, p.Path, c.Root) {
				t.Errorf("path of leaf %d of %d is refused", p.Index, size)
			}
			if VerifyPath(leaf, p.Index, size, append(slices.Clone(p.Path), c.Root), c.Root) {
				t.Errorf("a longer path of leaf %d of %d is accepted", p.Index, size)
			}
		}
	}
}

func TestCommitmentsAndSeeds(t *testing.T) {
	all := load(t)
	for _, c := range all.Commitments {
		if Commitment(c.Reveal) != c.Commitment {
			t.Errorf("wrong commitment of %x", c.Reveal)
		}
	}
	for _, c := range all.Seeds {
		if Seed(c.ItemID, c.Reveal, c.CohortRoot, c.Beacon) != c.Seed {
			t.Errorf("wrong seed for %s", c.ItemID)
		}
	}
}

func TestRecords(t *testing.T) {
	for _, c := range load(t).Records {
		if checks := CheckRecord(c.Record, c.Token); !slices.Equal(checks, c.Checks) {
			t.Errorf("%s:\n got %v\nwant %v", c.Name, checks, c.Checks)
		}
	}
}
