//go:build soak

package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

// browser is a headless Chromium, controlled through a pipe by its DevTools protocol: JSON objects,
// each followed by a zero byte.
type browser struct {
	t       *testing.T
	to      *os.File
	answers chan answer
	session string
	asked   int
	seen    []answer // events
}

type answer struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
}

const patience = 2 * time.Minute // the machine may be busy

func newBrowser(t *testing.T) *browser {
	t.Helper()
	need.Tools(t, "chromium")
	theirs, to := pipe(t)
	from, answering := pipe(t)
	command := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	command.ExtraFiles = []*os.File{theirs, answering}
	var said bytes.Buffer
	command.Stderr = &said
	must.Do(t, command.Start())
	_, _ = theirs.Close(), answering.Close()
	b := &browser{t: t, to: to, answers: make(chan answer, 1000)}
	go b.listen(from)
	t.Cleanup(func() {
		b.ask("Browser.close", nil, nil)
		stop := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
		defer stop.Stop()
		if err := command.Wait(); err != nil {
			t.Logf("chromium: %v: %s", err, said.String())
		}
	})
	return b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	return r, w
}

func (b *browser) listen(from *os.File) {
	defer close(b.answers)
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(line[:len(line)-1], &a) == nil {
			b.answers <- a
		}
	}
}

// ask runs a command, and reads its result into result.
func (b *browser) ask(method string, params map[string]any, result any) {
	b.t.Helper()
	b.asked++
	request := map[string]any{"id": b.asked, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" && method != "Browser.close" {
		request["sessionId"] = b.session
	}
	line := must.Get(json.Marshal(request))(b.t)
	if _, err := b.to.Write(append(line, 0)); err != nil {
		b.t.Fatal(err)
	}
	a := b.until(method, func(a answer) bool { return a.ID == b.asked })
	if a.Error != nil {
		b.t.Fatalf("%s: %s", method, a.Error)
	}
	if result != nil {
		must.Do(b.t, json.Unmarshal(a.Result, result))
	}
}

// until waits for the wanted answer, and keeps the events before it.
func (b *browser) until(what string, wanted func(answer) bool) answer {
	b.t.Helper()
	late := time.After(patience)
	for {
		select {
		case a, open := <-b.answers:
			if !open {
				b.t.Fatalf("%s: chromium is gone", what)
			}
			b.seen = append(b.seen, a)
			if wanted(a) {
				return a
			}
		case <-late:
			b.t.Fatalf("%s: chromium does not answer", what)
		}
	}
}

// openTab opens a new tab, and subscribes to all its events.
func (b *browser) openTab() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		b.ask(domain+".enable", nil, nil)
	}
}

// show shows the page at the address, in a window of that width.
func (b *browser) show(address string, width int, scheme string) {
	b.t.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.ask("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.seen = nil
	b.ask("Page.navigate", map[string]any{"url": address}, nil)
	for _, a := range b.seen {
		if a.Method == "Page.loadEventFired" {
			return
		}
	}
	b.until("load", func(a answer) bool { return a.Method == "Page.loadEventFired" })
}

// evaluate is the value of an expression in the page.
func (b *browser) evaluate(expression string, to any) {
	b.t.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &result)
	if result.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, result.ExceptionDetails)
	}
	if err := json.Unmarshal(result.Result.Value, to); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// screenshot is the whole page as a PNG.
func (b *browser) screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	return shot.Data
}

// complaints are the page's console messages, its errors, and all that it fetched besides the page
// itself.
func (b *browser) complaints(address string) (all []string) {
	for _, a := range b.seen {
		switch a.Method {
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			all = append(all, fmt.Sprintf("%s %s", a.Method, a.Params))
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			if err := json.Unmarshal(a.Params, &sent); err != nil || sent.Request.URL != address && sent.Request.URL != "data:," {
				all = append(all, fmt.Sprintf("fetched %q", sent.Request.URL))
			}
		}
	}
	return all
}
