package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// tableOf converts objects to the table of kubectl get.
type tableOf struct {
	columns []metav1.TableColumnDefinition // between name and age
	cells   func(obj runtime.Object) ([]any, error)
}

var _ rest.TableConvertor = tableOf{}

func (c tableOf) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	rows, err := table.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		row := []any{name}
		if c.cells != nil {
			cells, err := c.cells(obj)
			if err != nil {
				return nil, err
			}
			row = append(row, cells...)
		}
		return append(row, age), nil
	})
	if err != nil {
		return nil, err
	}
	t := &metav1.Table{Rows: rows}
	if list, err := meta.ListAccessor(obj); err == nil {
		t.ResourceVersion, t.Continue, t.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(obj); err == nil {
		t.ResourceVersion = one.GetResourceVersion()
	}
	// The rows after the first of a watch repeat no columns (rest.defaultTableConvertor).
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: description("name")})
		t.ColumnDefinitions = append(t.ColumnDefinitions, c.columns...)
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: description("creationTimestamp")})
	}
	return t, nil
}

func description(field string) string { return metav1.ObjectMeta{}.SwaggerDoc()[field] }
