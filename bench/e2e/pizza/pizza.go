// Package pizza has what both webhooks of the end-to-end benchmark have in common.
package pizza

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Default adds toppings to a pizza without any.
func Default(_ context.Context, p *v1beta1.Pizza) error {
	if len(p.Spec.Toppings) == 0 {
		p.Spec.Toppings = []v1beta1.PizzaTopping{{Name: "tomato"}, {Name: "mozzarella"}}
	}
	return nil
}

// Validate refuses toppings that no restaurant has.
func Validate(_ context.Context, p *v1beta1.Pizza) (errs field.ErrorList, _ error) {
	for i, topping := range p.Spec.Toppings {
		if topping.Name != "tomato" && topping.Name != "mozzarella" {
			errs = append(errs, field.NotFound(field.NewPath("spec", "toppings").Index(i).Child("name"), topping.Name))
		}
	}
	return errs, nil
}

// Usage is what a process has used so far.
type Usage struct {
	CPU  time.Duration // of all its threads
	Peak int64         // bytes resident at most
}

// ServeUsage answers with the Usage of this process.
func ServeUsage(w http.ResponseWriter, _ *http.Request) {
	u, err := usage()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(u)
}

func usage() (u Usage, err error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return u, err
	}
	u.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	status, err := os.ReadFile("/proc/self/status") // Rusage has the peak of the parent too
	if err != nil {
		return u, err
	}
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscanf(string(peak), "%d kB", &u.Peak); err != nil {
		return u, fmt.Errorf("VmHWM: %w", err)
	}
	u.Peak <<= 10
	return u, nil
}
