package docs

import (
	"regexp"
	"testing"
)

// The oldest Rust that is promised is the one that cargo insists on, that the images are built with, and that CI checks.
func TestEverybodyNamesTheSameRust(t *testing.T) {
	named := map[string]string{}
	for file, pattern := range map[string]string{
		"Cargo.toml":              `(?m)^rust-version = "([0-9.]+)"`,
		"infra/docker/Dockerfile": `(?m)^FROM rust:([0-9]+\.[0-9]+)\.[0-9]+-`,
		"README.md":               `Rust ([0-9.]+)`,
		"README.ko.md":            `Rust ([0-9.]+)`,
		"CONTRIBUTING.md":         `Rust ([0-9.]+)`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s names no Rust", file)
		}
		named[file] = found[1]
	}
	for file, version := range named {
		if version != named["Cargo.toml"] {
			t.Errorf("%s says %s, Cargo.toml %s", file, version, named["Cargo.toml"])
		}
	}
}
