package replica_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// A kubelet does not verify the certificate of what it probes.
var insecure = &tls.Config{InsecureSkipVerify: true}

// outside is a registration that does not know the operator's own namespace.
func outside(t *testing.T, opts ...registration.Option) *registration.Webhooks {
	t.Helper()
	hooks, err := registration.New("pizza-operator", append([]registration.Option{
		registration.URL("https://127.0.0.1:9443"),
		registration.Definitions([]byte(definition)),
		registration.Conversion("/convert", http.NotFoundHandler(), "pizzas.example.com"),
	}, opts...)...)
	check(t, err)
	return hooks
}

func TestMistakesAreFoundAtTheStartAndTheListenerIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		hooks *registration.Webhooks
		opts  []replica.Option
		want  string
	}{
		"no namespace for the Secret": {outside(t), nil, "the Secret's namespace"},
		"a Secret that cannot be":     {outside(t, registration.OwnNamespace("ns")), []replica.Option{replica.Secret("a/b")}, "the Secret's name"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		err = replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, l, c.hooks, c.opts...)
		if err == nil || !strings.HasPrefix(err.Error(), "replica: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s: the listener is open", name)
		}
	}
}
