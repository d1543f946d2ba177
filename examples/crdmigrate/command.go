package crdmigrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/conversion/migrate/metrics"
)

// The exit codes.
const (
	exitOK      = 0
	exitRefused = 1
	exitError   = 2
)

// command is what the subcommands share.
type command struct {
	out, errOut io.Writer
	kubeconfig  string
	context     string
}

// Run runs the command, and returns its exit code.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	c := &command{out: out, errOut: errOut}
	root := c.root()
	root.SetArgs(append([]string{}, args...)) // of nil, cobra makes those of the process
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errOut, "error: %s\n", err)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(errOut, "It was interrupted: run it again, and it goes on where it was.")
	}
	if refused(err) {
		return exitRefused
	}
	return exitError
}

// refused reports whether that is all that went wrong.
func refused(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !refused(err) })
	}
	return errors.Is(err, migrate.ErrRefused)
}

// rateFlag adds the flag of how fast the API server is asked.
func rateFlag(flags *pflag.FlagSet) *float64 {
	return flags.Float64("rate", 100, "Requests a second, at most; 0 leaves it to the API server.")
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "crdmigrate",
		Short: "Move stored objects to a new storage version, and remove old versions",
		Long: `crdmigrate moves the stored objects of CustomResourceDefinitions to their storage
version, and takes old versions out of the definitions. It may be killed at any time, and
run again.

The exit code is 0 if it is done, 1 if objects could not be rewritten or a version cannot be
removed, and 2 if the command line is wrong or something went wrong on the way.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&c.kubeconfig, "kubeconfig", "", "Path to a kubeconfig file. Without it, as kubectl: $KUBECONFIG, ~/.kube/config, or the service account of the pod.")
	root.PersistentFlags().StringVar(&c.context, "context", "", "The context of the kubeconfig file. Without it, the current one.")
	root.AddCommand(c.run(), c.remove(), c.rules())
	return root
}

// config returns how to reach the API server.
func (c *command) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
}

func (c *command) run() *cobra.Command {
	var (
		dryRun           bool
		rate             *float64
		propagationDelay time.Duration
		address          string
	)
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Rewrite the stored objects of definitions in their storage version",
		Long: `run writes each stored object of a definition again, as it is, so that the API server
stores it in the storage version. Then it takes the other versions out of
status.storedVersions. Definitions are named as kubectl names them:
pizzas.restaurant.example.com.`,
		Example: `  crdmigrate run pizzas.restaurant.example.com --dry-run
  crdmigrate run pizzas.restaurant.example.com --rate=500`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			config, err := c.config()
			if err != nil {
				return err
			}
			observe, stop, err := serveMetrics(address)
			if err != nil {
				return err
			}
			defer stop()
			opts := []migrate.Option{migrate.Rate(*rate), migrate.PropagationDelay(propagationDelay)}
			if dryRun {
				opts = append(opts, migrate.DryRun())
			}
			var errs []error
			for _, name := range names {
				errs = append(errs, c.migrate(cmd.Context(), config, name, observe(name), dryRun, opts))
			}
			return errors.Join(errs...)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "Only say what would happen: the API server checks each write, and stores nothing.")
	rate = rateFlag(flags)
	flags.DurationVar(&propagationDelay, "propagation-delay", 70*time.Second, "How long to wait, if the definition was changed in this time or in the ten minutes before it, until all API servers know the storage version and have answered what was asked before: 10s and their --request-timeout.")
	flags.StringVar(&address, "metrics-bind-address", "", "Address for metrics, such as :8080, at /metrics. Without it there are none.")
	return cmd
}

// migrate migrates the objects of one definition.
func (c *command) migrate(ctx context.Context, config *rest.Config, name string, observe func(migrate.Progress), dryRun bool, opts []migrate.Option) error {
	bar := newProgress(c.errOut, name, "waiting for the first list of objects")
	report, err := migrate.Run(klog.NewContext(ctx, bar.logger()), config, name, append(opts, migrate.Observe(observe), migrate.Observe(bar.show))...)
	bar.end()
	// Before it has begun, there is only the error to report.
	if report != nil && (err == nil || report.Progress != migrate.Progress{}) {
		fmt.Fprintln(c.out, sentence(name, report, dryRun))
	}
	return err
}

// sentence says what was done.
func sentence(name string, r *migrate.Report, dryRun bool) string {
	if r.Progress == (migrate.Progress{}) && r.Dropped == nil {
		return fmt.Sprintf("%s: nothing to do: only %s is stored", name, r.Storage)
	}
	rewritten, dropped := "rewritten in", "dropped from status.storedVersions"
	if dryRun {
		rewritten, dropped = "can be rewritten in", "can be dropped from status.storedVersions"
	}
	text := fmt.Sprintf("%s: %d objects %s %s, %d were current, %d have gone, %d failed", name, r.Rewritten, rewritten, r.Storage, r.Current, r.Gone, r.Failed)
	if len(r.Dropped) > 0 {
		text += fmt.Sprintf("; %s %s", strings.Join(r.Dropped, ", "), dropped)
	}
	return text
}

// serveMetrics serves the metrics of migrations at an address, unless that is empty.
func serveMetrics(address string) (observe func(crd string) func(migrate.Progress), stop func(), err error) {
	registry := prometheus.NewRegistry()
	if observe, err = metrics.Prometheus(registry); err != nil || address == "" {
		return observe, func() {}, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("--metrics-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // it returns when it is closed
	return observe, func() { _ = server.Close() }, nil
}

func (c *command) remove() *cobra.Command {
	var (
		dryRun, forget bool
		rate           *float64
	)
	cmd := &cobra.Command{
		Use:   "remove NAME VERSION",
		Short: "Take a version out of a definition, if nobody needs it any more",
		Long: `remove takes a version out of spec.versions of a definition. It refuses to as long as the
version is the storage version, is in status.storedVersions, is served, or is named in
managedFields of an object, and says what to do about it.`,
		Example: `  crdmigrate remove pizzas.restaurant.example.com v1alpha1 --dry-run`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := c.config()
			if err != nil {
				return err
			}
			opts := []migrate.Option{migrate.Rate(*rate)}
			removed := "was removed"
			if dryRun {
				opts, removed = append(opts, migrate.DryRun()), "can be removed"
			}
			if forget {
				opts = append(opts, migrate.PruneManagedFields())
			}
			bar := newProgress(c.errOut, args[0], "reading the managedFields of all objects")
			opts = append(opts, migrate.Observe(bar.show))
			err = migrate.Remove(klog.NewContext(cmd.Context(), bar.logger()), config, args[0], args[1], opts...)
			bar.end()
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s: %s %s\n", args[0], args[1], removed)
			return nil
		},
	}
	rate = rateFlag(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Only say whether it could be removed.")
	cmd.Flags().BoolVar(&forget, "prune-managed-fields", false, "Remove it even if managedFields name it: these owners lose their fields, which stay as they are.")
	return cmd
}

func (c *command) rules() *cobra.Command {
	return &cobra.Command{
		Use:   "rules NAME...",
		Short: "Print the ClusterRole that run and remove need",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			role := rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
				ObjectMeta: metav1.ObjectMeta{Name: "crdmigrate"},
			}
			for _, name := range names {
				if !strings.Contains(name, ".") {
					return fmt.Errorf("%q is not the name of a definition: those have a group, as pizzas.restaurant.example.com", name)
				}
				role.Rules = append(role.Rules, migrate.PolicyRules(name)...)
			}
			text, err := yaml.Marshal(role)
			if err == nil {
				_, err = c.out.Write(text)
			}
			return err
		},
	}
}
