package registration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/test/expect"
)

func TestDifferences_NameTheField(t *testing.T) {
	const good = `{"name":"a","timeoutSeconds":10,"clientConfig":{"service":{"name":"s","namespace":"n","path":"/a"}},"namespaceSelector":{},"rules":[{"operations":["CREATE"]}]}`
	parse := func(webhook string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		expect.NoError(t, json.Unmarshal([]byte(`{"webhooks":[`+webhook+`]}`), &u.Object))
		return u
	}
	w := &Webhooks{endpoint: &endpoint{namespace: "n", service: "s"}}
	declared := parse(good)
	declared.Object["webhooks"].([]any)[0].(map[string]any)["timeoutSeconds"] = int64(10)
	o := &object{kind: "MutatingWebhookConfiguration", name: "p", declared: declared.Object, declaresWebhook: true}
	for name, c := range map[string]struct{ old, new, want string }{
		"none":                          {"", "", ""},
		"more of a later API server":    {`"timeoutSeconds"`, `"other":1,"timeoutSeconds"`, ""},
		"a bundle":                      {`"clientConfig":{`, `"clientConfig":{"caBundle":"x",`, ""},
		"another value":                 {"10", "11", "webhooks[a].timeoutSeconds is 11, expected 10"},
		"no value":                      {`"timeoutSeconds":10,`, "", "webhooks[a].timeoutSeconds is absent, expected 10"},
		"another path":                  {"/a", "/b", `webhooks[a].clientConfig.service.path is "/b", expected "/a"`},
		"no client config":              {`{"service":{"name":"s","namespace":"n","path":"/a"}}`, `null`, `webhooks[a] is absent, expected {"service":{"name":"s","namespace":"n","path":"/a"}}`},
		"more in a selector":            {`"namespaceSelector":{}`, `"namespaceSelector":{"matchLabels":{"a":"b"}}`, `webhooks[a].namespaceSelector.matchLabels is {"a":"b"}, expected absent`},
		"more rules":                    {`"rules":[`, `"rules":[{},`, `webhooks[a].rules is [{},{"operations":["CREATE"]}], expected [{"operations":["CREATE"]}]`},
		"a condition":                   {`"rules"`, `"matchConditions":[{"name":"never"}],"rules"`, `webhooks[a].matchConditions is [{"name":"never"}], expected absent`},
		"a webhook that is undeclared":  {good, good + "," + strings.Replace(good, `"a"`, `"b"`, 1), `webhooks[b] is {"service":{"name":"s","namespace":"n","path":"/a"}}, expected absent`},
		"a webhook of somebody else":    {good, good + `,{"name":"b","clientConfig":{"url":"https://x"}}`, ""},
		"something else than an object": {good, good + `,[]`, ""},
	} {
		var got []string
		for _, d := range w.differences(o, parse(strings.Replace(good, c.old, c.new, 1))) {
			got = append(got, d.text())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
