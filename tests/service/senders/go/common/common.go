// Package common is what the programs in Go share: PROGRAM RECORDS TCP-PORT UDP-PORT HTTP-PORT.
package common

import (
	"encoding/json"
	"errors"
	"math"
	"net"
	"os"
	"strings"
)

// Record is one that a program is told to send.
type Record struct {
	Message string
	Level   string
	Fields  map[string]any
	Raises  bool
}

// Failure is the error of the record that has one.
var Failure = errors.New("no such customer: Zoë")

// Read returns the records, with whole numbers as such.
func Read() []Record {
	text, err := os.ReadFile(os.Args[1])
	Must(err)
	var records []Record
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	Must(decoder.Decode(&records))
	for _, record := range records {
		for name, value := range record.Fields {
			record.Fields[name] = plain(value)
		}
	}
	return records
}

func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, err := value.Float64()
		Must(err)
		if math.IsInf(number, 0) {
			panic("too large")
		}
		return number
	case []any:
		for place := range value {
			value[place] = plain(value[place])
		}
	case map[string]any:
		for name := range value {
			value[name] = plain(value[name])
		}
	}
	return value
}

// Connect opens a connection for lines.
func Connect() net.Conn {
	connection, err := net.Dial("tcp", "127.0.0.1:"+os.Args[2])
	Must(err)
	return connection
}

// Must ends the program at an error.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
