package reload_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crdkit/crdkit/internal/reload"
	"github.com/crdkit/crdkit/test/expect"
)

var errBad = errors.New("bad")

// join is a parser that counts its calls, and refuses what contains "bad".
func join(calls *int) func([][]byte) (string, error) {
	return func(contents [][]byte) (string, error) {
		*calls++
		all := string(bytes.Join(contents, []byte("+")))
		if strings.Contains(all, "bad") {
			return "", errBad
		}
		return all, nil
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestFiles_FollowChanges(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write(t, first, "a")
	write(t, second, "b")
	synctest.Test(t, func(t *testing.T) {
		var calls int
		files, err := reload.New(join(&calls), first, second)
		expect.NoError(t, err)
		wantValue := func(value string, parsed int) {
			t.Helper()
			if got := files.Value(); got != value || calls != parsed {
				t.Errorf("the value is %q after %d calls of the parser, want %q after %d", got, calls, value, parsed)
			}
		}
		wantValue("a+b", 1)
		write(t, second, "c")
		time.Sleep(reload.Interval - time.Millisecond)
		wantValue("a+b", 1)
		time.Sleep(time.Millisecond)
		wantValue("a+c", 2)
		time.Sleep(reload.Interval)
		wantValue("a+c", 2)
	})
}

func TestFiles_KeepTheLastGoodValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "good")
	var calls int
	files, err := reload.New(join(&calls), path)
	expect.NoError(t, err)
	wantError := func(want error) {
		t.Helper()
		value, err := files.Check()
		if value != "good" || !errors.Is(err, want) {
			t.Errorf("got %q and the error %v, want good and %v", value, err, want)
		}
	}
	write(t, path, "bad")
	wantError(errBad)
	wantError(errBad) // not only when it has changed
	expect.NoError(t, os.Remove(path))
	wantError(os.ErrNotExist)
	write(t, path, "good")
	wantError(nil)
}

func TestNew_ReportsWhatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var calls int
	if _, err := reload.New(join(&calls), path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	write(t, path, "bad")
	if _, err := reload.New(join(&calls), path); !errors.Is(err, errBad) {
		t.Errorf("got %v", err)
	}
}
