package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// startTime is how long a command may take until its webhook answers.
const startTime = time.Minute

// webhookFlags are the flags for the conversion webhooks of both releases.
type webhookFlags struct {
	old, new  struct{ url, command string }
	authority string
	insecure  bool
}

func (w *webhookFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&w.new.url, "webhook", "", "The URL of the new conversion webhook.")
	flags.StringVar(&w.new.command, "webhook-command", "", "A shell command that serves the new webhook. It is started without a kubeconfig, and stopped at the end.")
	flags.StringVar(&w.old.url, "from-webhook", "", "The URL of the old conversion webhook. Without it, the old release reads objects only as they are stored.")
	flags.StringVar(&w.old.command, "from-webhook-command", "", "A shell command that serves the old webhook.")
	flags.StringVar(&w.authority, "certificate-authority", "", "A file with the certificates that webhooks are verified by.")
	flags.BoolVar(&w.insecure, "insecure-skip-tls-verify", false, "Do not verify the certificates of webhooks.")
}

// start starts the commands, and returns the webhooks. A webhook that is unreachable ends the context, and so does stop,
// which must be called even after an error.
func (w *webhookFlags) start(ctx context.Context, end context.CancelCauseFunc, c *command) (old, now http.Handler, stop func(), err error) {
	config := &tls.Config{InsecureSkipVerify: w.insecure}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 2}}
	var running []chan error
	stop = func() {
		end(nil)
		for _, ended := range running {
			<-ended // as it was told to
		}
		client.CloseIdleConnections()
	}
	if w.authority != "" {
		pem, err := os.ReadFile(w.authority)
		if err != nil {
			return nil, nil, stop, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, stop, fmt.Errorf("%s: the file has no certificate in PEM", w.authority)
		}
	}
	for _, one := range []struct {
		url, command string
		into         *http.Handler
	}{{w.old.url, w.old.command, &old}, {w.new.url, w.new.command, &now}} {
		if one.url == "" && one.command != "" {
			return nil, nil, stop, fmt.Errorf("the command %q serves at an unknown URL: --webhook or --from-webhook must be specified", one.command)
		}
		if one.url == "" {
			continue
		}
		to, err := url.Parse(one.url)
		if err != nil {
			return nil, nil, stop, err
		}
		*one.into = forward(to, client, end)
		if one.command == "" {
			continue
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+one.command)
		// An operator must not reconcile in the cluster of the shell. Without KUBECONFIG, it would read ~/.kube/config.
		cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull, "KUBERNETES_SERVICE_HOST=")
		cmd.Stdout, cmd.Stderr = c.errOut, c.errOut
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		if err = cmd.Start(); err == nil {
			ended := make(chan error, 2)
			running = append(running, ended)
			go func() {
				err := cmd.Wait()
				ended <- err // for awaitServer, or else for stop
				ended <- err
			}()
			err = c.awaitServer(ctx, to, ended)
		}
		if err != nil {
			return nil, nil, stop, fmt.Errorf("the command %q: %w", one.command, err)
		}
	}
	return old, now, stop, nil
}

// awaitServer waits until a server accepts connections, or its process has ended.
func (c *command) awaitServer(ctx context.Context, address *url.URL, ended <-chan error) error {
	port := cmp.Or(address.Port(), address.Scheme) // net knows the port of http and https
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port))
		if err == nil {
			return conn.Close()
		}
		c.progress.show("wait for %s", address)
		select {
		case err := <-ended:
			return fmt.Errorf("the process ended before it served %s: %w", address, cmp.Or(err, errors.New("exit status 0")))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", address, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// maxAnswer is the size of the largest answer that is read.
const maxAnswer = 256 << 20

// forward returns a handler that sends its requests to a URL. If it cannot connect, whatever the objects are, it calls
// unreachable.
func forward(to *url.URL, client *http.Client, unreachable context.CancelCauseFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connected := false
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
		request := r.Clone(httptrace.WithClientTrace(r.Context(), trace))
		request.URL = to
		response, err := client.Do(request)
		var text []byte
		if err == nil {
			defer func() { _ = response.Body.Close() }()
			text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
		}
		switch {
		case err != nil && !connected:
			unreachable(fmt.Errorf("webhook unreachable: %w", err))
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		case len(text) > maxAnswer:
			http.Error(w, fmt.Sprintf("the answer has more than %d bytes", maxAnswer), http.StatusBadGateway)
		default:
			w.WriteHeader(response.StatusCode)
			_, _ = w.Write(text)
		}
	})
}
