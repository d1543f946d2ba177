//go:build ignore

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

func main() {
	url := flag.String("url", "", "")
	h2 := flag.Bool("h2", true, "")
	clients := flag.Int("c", 8, "")
	pause := flag.Duration("pause", 0, "")
	d := flag.Duration("d", 4*time.Second, "")
	flag.Parse()
	body, _ := os.ReadFile("/tmp/review1.json")
	protos := new(http.Protocols)
	protos.SetHTTP2(*h2)
	protos.SetHTTP1(!*h2)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protos, MaxIdleConnsPerHost: 25}}
	used := func() (u struct{ CPU time.Duration }) {
		r, err := c.Get(*url + "/usage")
		if err != nil {
			panic(err)
		}
		json.NewDecoder(r.Body).Decode(&u)
		r.Body.Close()
		return
	}
	before := used()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	begin := time.Now()
	for range *clients {
		wg.Go(func() {
			var l []time.Duration
			for time.Since(begin) < *d {
				t := time.Now()
				r, err := c.Post(*url+"/convert", "application/json", bytes.NewReader(body))
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				l = append(l, time.Since(t))
				time.Sleep(*pause)
			}
			mu.Lock()
			all = append(all, l...)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(begin)
	cpu := used().CPU - before.CPU
	slices.Sort(all)
	fmt.Printf("h2=%v %d requests, %.0f/s, p50 %v p99 %v, server CPU %.1f µs\n", *h2, len(all), float64(len(all))/took.Seconds(), all[len(all)/2], all[len(all)*99/100], cpu.Seconds()*1e6/float64(len(all)))
}
