// go-hclog: its JSON lines over TCP.
package main

import (
	"github.com/hashicorp/go-hclog"

	"logspool/tests/senders/common"
)

// Its highest level is that of errors.
var levels = map[string]hclog.Level{
	"DEBUG": hclog.Debug, "INFO": hclog.Info, "WARNING": hclog.Warn, "ERROR": hclog.Error, "CRITICAL": hclog.Error,
}

func main() {
	connection := common.Connect()
	defer connection.Close()
	options := hclog.LoggerOptions{Name: "shop.cart", Level: hclog.Trace, Output: connection, JSONFormat: true}
	log := hclog.New(&options)
	for _, record := range common.Read() {
		var fields []any
		for name, value := range record.Fields {
			fields = append(fields, name, value)
		}
		if record.Raises {
			fields = append(fields, "error", common.Failure)
		}
		log.Log(levels[record.Level], record.Message, fields...)
	}
}
