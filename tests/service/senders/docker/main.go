// Send records as Docker's log driver `fluentd` does: with its client, its options and its keys.
//
//	docker RECORDS PORT
//
// As with
//
//	docker run --log-driver fluentd --log-opt fluentd-address=localhost:PORT --log-opt tag=shop \
//	    --log-opt fluentd-async=true --log-opt fluentd-request-ack=true --log-opt fluentd-sub-second-precision=true
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"
)

func main() {
	if err := send(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func send(file, address string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var records []struct{ Message string }
	if err := json.Unmarshal(text, &records); err != nil {
		return err
	}
	port, err := strconv.Atoi(address)
	if err != nil {
		return err
	}
	client, err := fluent.New(fluent.Config{
		FluentHost:         "127.0.0.1",
		FluentPort:         port,
		FluentNetwork:      "tcp",
		BufferLimit:        1024 * 1024,
		RetryWait:          1000,
		MaxRetry:           math.MaxInt32,
		Async:              true,
		SubSecondPrecision: true,
		RequestAck:         true,
	})
	if err != nil {
		return err
	}
	for number, record := range records {
		data := map[string]string{
			"container_id":   "0123456789abcdef",
			"container_name": "/shop",
			"source":         []string{"stdout", "stderr"}[number%2],
			"log":            record.Message,
		}
		if err := client.PostWithTime("shop", time.Now(), data); err != nil {
			return err
		}
	}
	return client.Close()
}
