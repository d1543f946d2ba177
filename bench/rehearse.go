package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/crontab"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
)

// rehearsed is how many objects the figures are about, rehearseLimit how long they may take.
const (
	rehearsed     = 50_000
	rehearseLimit = time.Minute
)

// rehearse replays stored CronTabs of 1.5 KB through the upgrade to their second release: two
// versions, with a conversion webhook on both sides. It prints how much faster that is than the limit.
func (b bench) rehearse() error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/crdkit/crdkit").Output()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "examples/crontab/config/crd/stable.example.com_crontabs.yaml"))
	if err != nil {
		return err
	}
	d, err := schema.Parse(text)
	if err != nil {
		return err
	}
	reg, err := crontab.NewRegistry()
	if err != nil {
		return err
	}
	release := schema.Release{Definitions: []*schema.Definition{d}, Handler: conversion.NewHandler(reg)}
	var peak uint64
	objects := func(yield func(rehearse.Object, error) bool) {
		for i := range rehearsed {
			if i%1000 == 0 {
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapAlloc)
			}
			if !yield(rehearse.Object{Text: cronTab(i)}, nil) {
				return
			}
		}
	}
	runtime.GC()
	begin, used := time.Now(), cpu()
	report, err := rehearse.Run(context.Background(), release, release, objects)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if len(report.Findings) > 0 || report.Objects != rehearsed {
		return fmt.Errorf("%d objects have %d findings, want %d and none", report.Objects, len(report.Findings), rehearsed)
	}
	ratio("rehearse/50000", rehearseLimit.Seconds()/took.Seconds())
	fmt.Printf("  %d CronTabs of %d bytes are rehearsed in %.1f s (%.0f a second), with %.1f s of CPU time and at most %d MiB on the heap\n",
		rehearsed, len(cronTab(0)), took.Seconds(), rehearsed/took.Seconds(), (cpu() - used).Seconds(), peak>>20)
	return nil
}

// cronTab is an object as a server has stored it.
func cronTab(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"ct-%d","namespace":"default","uid":"u-%d",
		"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"app":"reports","team":"storefront"}},
		"spec":{"cronSpec":"*/5 * * * *","image":"registry.example.com/team/image:%d","replicas":3,"hostPort":"host-%d.example.com:8080","timeZone":"Etc/UTC",
		"job":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"report"},"spec":{"template":{"spec":{"containers":[
		{"name":"main","image":"busybox","env":[{"name":"A","value":"%0800d"}]}]}}}}}}`, i, i, i, i, i)
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it fails for wrong arguments alone
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
