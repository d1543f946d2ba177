// Package menu has the steps of a walkthrough that pass wherever pizzas are served: as custom
// resources, and by an aggregated API server.
package menu
