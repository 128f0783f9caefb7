package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// No response of daegi to a guard is as large.
const maxResponseBytes = 1 << 20

// internalClient calls daegi's internal listener, which knows whether an entry has ended.
type internalClient struct{ config config }

// Returns whether the entry of this pass is still live.
func (c *internalClient) hasEntry(ctx context.Context, item, pass string) (bool, error) {
	var verdict struct {
		Valid bool `json:"valid"`
	}
	err := c.call(ctx, item, "verify", map[string]string{"pass": pass}, &verdict)
	return verdict.Valid, err
}

// Ends an entry. Returns false if it had already ended.
func (c *internalClient) complete(ctx context.Context, item, token string) (bool, error) {
	var completed struct {
		Released bool `json:"released"`
	}
	err := c.call(ctx, item, "complete", map[string]string{"token": token}, &completed)
	return completed.Released, err
}

func (c *internalClient) call(ctx context.Context, item, operation string, body, result any) error {
	url := c.config.internalURL + "/internal/v1/item/" + item + "/entry/" + operation
	return c.config.call(ctx, http.MethodPost, url, body, result)
}

// Sends one request with JSON and decodes the response, which must be 200.
func (c config) call(ctx context.Context, method, url string, body, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responded with %d", url, response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxResponseBytes)).Decode(result); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}
