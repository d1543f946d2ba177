package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
)

func (c *command) rehearse() *cobra.Command {
	var from, to, objects, redact []string
	var hooks webhookFlags
	var known accepted
	cmd := &cobra.Command{
		Use:   "rehearse --from CRD --to CRD --objects FILE",
		Short: "Replay stored objects through an upgrade and back",
		Long: `Replay stored objects through an upgrade of definitions and their conversion webhook: the old
release reads them, the new one reads and writes them in each version, and after a rollback the
old one reads what the new one has written. Reported is what becomes unreadable or refused, and
what is removed, changed or added, by cause, each with the smallest object. Nothing is
written anywhere.

The objects are those of one or more files of any size, as kubectl get -o yaml or -o json prints
them. Take them in the version that is stored, and look at the file before sharing it: Secrets in
custom objects are in it. Values of --redact are not printed.

Only what is lost makes the exit code 1: fields that are added do not, and neither do problems
that the old release has, too. A loss can be accepted as crdcheck diff accepts a change: -o accept
prints an entry for each, and --accept reads the entries, each of which must have a reason. An
entry that matches nothing is not reported, because another cluster may have such objects. If a
webhook cannot be reached, the rehearsal ends with the exit code 3.

The webhook of the new release is called where objects have to be converted, and that
of the old release if it is given. Both get no more than conversion reviews. So that a command
that is started writes to no cluster, its KUBECONFIG is /dev/null, and KUBERNETES_SERVICE_HOST is
empty. To give it the kubeconfig of a test cluster, begin the command with env KUBECONFIG=FILE.`,
		Example: `  # A snapshot, in the version that is stored
  kubectl get crontabs.v1beta1.stable.example.com --all-namespaces -o yaml >objects.yaml

  # Rehearse an upgrade with a webhook that is started for it
  crdcheck rehearse --from old/crd --to config/crd --objects objects.yaml --redact spec.password \
    --webhook http://127.0.0.1:9443/convert --webhook-command 'bin/convert 127.0.0.1:9443'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			before, after := c.parse(ctx, from), c.parse(ctx, to)
			c.readAccepted(&known)
			if c.failed { // objects would be taken for unknown
				return nil
			}
			for kind, d := range after.byKind {
				converts := d.CustomResourceDefinition().Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter && len(d.Versions()) > 1
				if converts && before.byKind[kind] != nil && hooks.new.url == "" {
					return fmt.Errorf("%s is converted by a webhook: --webhook must be specified", kind)
				}
			}
			ctx, end := context.WithCancelCause(ctx)
			old, now, stop, err := hooks.start(ctx, end, c)
			defer stop()
			if err != nil {
				return err
			}
			snapshot := &snapshot{command: c, groups: before.groups(), others: map[string]int{}}
			report, err := rehearse.Run(ctx, schema.Release{Definitions: before.list, Handler: old}, schema.Release{Definitions: after.list, Handler: now},
				snapshot.all(ctx, objects), rehearse.Redact(redact...))
			c.progress.clear()
			if interrupted := c.interrupted(cmd.Context()); err != nil && !interrupted {
				c.fail(err)
				c.incomplete = report != nil // a webhook is unreachable
			}
			if report == nil {
				return nil
			}
			return c.printRehearsal(report, snapshot, &known, map[string]string{"old": hooks.old.url, "new": hooks.new.url}, err == nil)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&from, "from", nil, "A file or directory with the old definitions. May be given more than once.")
	flags.StringArrayVar(&to, "to", nil, "A file or directory with the new definitions. May be given more than once.")
	flags.StringArrayVar(&objects, "objects", nil, "A file or directory with objects, or - for standard input. May be given more than once.")
	flags.StringSliceVar(&redact, "redact", nil, "Fields whose values are not printed, such as spec.password or spec.users[*].token.")
	known.add(flags)
	hooks.add(flags)
	for _, name := range []string{"from", "to", "objects"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // it is not there
		}
	}
	return cmd
}

// snapshot is the objects of files, which are read one after another.
type snapshot struct {
	*command
	groups map[string]bool
	others map[string]int // how many are of kinds that no definition knows
	n      int
}

// all yields the objects of files, directories and standard input.
func (s *snapshot) all(ctx context.Context, paths []string) iter.Seq2[rehearse.Object, error] {
	return func(yield func(rehearse.Object, error) bool) {
		for _, path := range paths {
			names, named := s.expand(path)
			for _, name := range names {
				if ctx.Err() != nil || !s.file(ctx, name, named, yield) {
					return
				}
			}
		}
	}
}

// file yields the objects of a file, and reports whether more are wanted.
func (s *snapshot) file(ctx context.Context, name string, named bool, yield func(rehearse.Object, error) bool) (more bool) {
	source := s.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			s.fail(err)
			return true
		}
		defer func() { _ = file.Close() }()
		source = file
	}
	read, write := io.Pipe()
	defer func() { _ = read.Close() }()
	defer context.AfterFunc(ctx, func() { write.CloseWithError(ctx.Err()) })() // a read of a terminal does not end
	go func() {
		_, err := io.Copy(write, source)
		write.CloseWithError(err)
	}()
	more = true
	readStored(name, read, func(o rehearse.Object, err error) bool {
		if more = ctx.Err() == nil; !more { // the error is that of the pipe
			return false
		}
		if errors.Is(err, errEmpty) && !named {
			return true
		}
		var is metav1.TypeMeta
		if o.Text != nil && kjson.UnmarshalCaseSensitivePreserveInts(o.Text, &is) == nil {
			gvk := runtimeschema.FromAPIVersionAndKind(is.APIVersion, is.Kind)
			if is.Kind != "" && !s.groups[gvk.Group] || is.Kind == "" && !named {
				s.others[fmt.Sprintf("kind %q in version %q", is.Kind, is.APIVersion)]++
				return true
			}
		}
		s.n++
		s.progress.show("rehearse %d objects %s", s.n, o.Where)
		more = yield(o, err)
		return more
	})
	return more
}

// rehearsed is a finding, and the reason to accept it.
type rehearsed struct {
	rehearse.Finding
	Accepted *acceptance `json:"accepted,omitempty"`
}

func (f rehearsed) identity() identity {
	return identity{Definition: f.Kind, Step: string(f.Step), Effect: string(f.Effect), Version: f.Version, Path: f.Path, Cause: f.Cause}
}

// printRehearsal prints the report, and counts what is lost. urls are those of the webhooks, by release.
func (c *command) printRehearsal(report *rehearse.Report, s *snapshot, known *accepted, urls map[string]string, complete bool) error {
	passedOver, invalid, accepted := 0, 0, 0
	for _, other := range slices.Sorted(maps.Keys(s.others)) {
		passedOver += s.others[other]
		c.warn("%s passed over: no matches for %s", count(s.others[other], "object"), other)
	}
	findings := []rehearsed{}
	var open []identity
	for _, f := range report.Findings {
		found := rehearsed{Finding: f}
		if f.Lost() {
			if found.Accepted = known.accept(found.identity()); found.Accepted != nil {
				accepted++
			} else {
				open = append(open, found.identity())
			}
		}
		findings = append(findings, found)
		if f.Step == rehearse.Input {
			invalid++
			what := strings.TrimPrefix(f.Kind+" "+f.Example.Name+": ", " : ")
			more := ""
			if f.Objects > 1 {
				more = fmt.Sprintf(" (and %d more)", f.Objects-1)
			}
			c.fail(fmt.Errorf("%s: %s%s%s", f.Example.Where, what, f.Example.Error, more))
		}
	}
	for _, what := range report.Unchecked {
		c.warn("not rehearsed: %s", what)
	}
	c.findings = len(open)
	if report.Objects == 0 && !c.failed {
		c.fail(fmt.Errorf("rehearse: no object of a group that the definitions have (%d passed over)", passedOver))
	}
	switch c.output {
	case "json":
		return c.printJSON(struct {
			*rehearse.Report
			Findings   []rehearsed `json:"findings"` // instead of those of the report
			PassedOver int         `json:"passedOver"`
			Errors     []string    `json:"errors"`
		}{report, findings, passedOver, append([]string{}, c.failures...)})
	case "accept":
		return c.printEntries(open)
	}
	for _, f := range findings {
		if f.Step == rehearse.Input {
			continue
		}
		fmt.Fprintln(c.out, f)
		if f.Accepted != nil {
			fmt.Fprintf(c.out, "    accepted: %s\n", f.Accepted)
		}
	}
	for _, call := range report.Calls {
		fmt.Fprintf(c.out, "%s webhook %s: %s %s converted to %s: %s\n", call.Release, urls[call.Release], call.Kind, call.From, call.To, count(call.Objects, "object"))
	}
	if report.Objects > 0 {
		end := ""
		if accepted > 0 {
			end = fmt.Sprintf(", %d accepted", accepted)
		}
		if !complete {
			end += ", and the rehearsal is not complete"
		}
		fmt.Fprintf(c.out, "%s rehearsed: %s, %d of them lost%s\n", count(report.Objects, "object"), count(len(report.Findings)-invalid, "finding"), len(open), end)
	}
	return nil
}
