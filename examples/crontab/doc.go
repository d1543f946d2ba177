// Package crontab is the life of an API version: the CronTab of the Kubernetes
// documentation, whose hostPort became host and port.
//
// README.md is the walk through it, with kubectl. The definitions are in config/crd,
// conversion.go has how a version becomes the other, and crontab.go how the API server
// learns of it. The program is in cmd/crontab.
//
//	err := crontab.Run(ctx, config, listener, "https://127.0.0.1:9443")
//
// It has no Go types for its kinds, and no controller: a CronTab does nothing. For an
// operator that has all of it, see examples/pizza.
package crontab
