// Package crontab shows the lifecycle of an API version with the CronTab of the Kubernetes
// documentation, whose field hostPort is replaced by host and port.
//
// README.md is a walkthrough with kubectl. The CustomResourceDefinitions are in config/crd.
// Read conversion.go for the conversion between the versions, and crontab.go for the
// registration of the webhook with the API server. The program is in cmd/crontab.
//
//	err := crontab.Run(ctx, config, listener, "https://127.0.0.1:9443")
//
// The package has no Go types for its kind, and no controller, so a CronTab starts no jobs. For a
// complete operator, see examples/pizza.
package crontab
