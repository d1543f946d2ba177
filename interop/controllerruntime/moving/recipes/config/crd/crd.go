// Package crd embeds the definitions that controller-gen writes into the folder bases.
package crd

import _ "embed"

//go:embed bases/example.com_backups.yaml
var Backups []byte
