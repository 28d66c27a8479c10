// Command gelf appends the GELF messages that it gets by UDP at an address to a file, as lines of JSON.
//
// The messages are read by Graylog's own library for Go.
package main

import (
	"bytes"
	"log"
	"os"

	"github.com/Graylog2/go-gelf/gelf"
)

func main() {
	reader, err := gelf.NewReader(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	for {
		message, err := reader.ReadMessage()
		if err != nil {
			log.Fatal(err)
		}
		var line bytes.Buffer
		if err := message.MarshalJSONBuf(&line); err != nil {
			log.Fatal(err)
		}
		line.WriteByte('\n')
		if _, err := file.Write(line.Bytes()); err != nil {
			log.Fatal(err)
		}
	}
}
