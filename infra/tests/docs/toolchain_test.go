package docs

import (
	"regexp"
	"testing"
)

// The documented minimum Rust version must equal that of Cargo.toml, of the images and of CI.
func TestAllFilesNameTheSameRustVersion(t *testing.T) {
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
			t.Fatalf("%s names no Rust version", file)
		}
		named[file] = found[1]
	}
	for file, version := range named {
		if version != named["Cargo.toml"] {
			t.Errorf("%s has %s, Cargo.toml %s", file, version, named["Cargo.toml"])
		}
	}
}
