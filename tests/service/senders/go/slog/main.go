// slog of the standard library: its JSONHandler, over TCP.
package main

import (
	"context"
	"log/slog"

	"logspool/tests/senders/common"
)

// slog has no name for a level above errors; its texts count from the next lower one: ERROR+4.
var levels = map[string]slog.Level{
	"DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARNING": slog.LevelWarn, "ERROR": slog.LevelError,
	"CRITICAL": slog.LevelError + 4,
}

func main() {
	connection := common.Connect()
	defer connection.Close()
	handler := slog.NewJSONHandler(connection, &slog.HandlerOptions{Level: slog.LevelDebug})
	log := slog.New(handler).With("logger", "shop.cart")
	for _, record := range common.Read() {
		var fields []any
		for name, value := range record.Fields {
			fields = append(fields, name, value)
		}
		if record.Raises {
			fields = append(fields, "error", common.Failure)
		}
		log.Log(context.Background(), levels[record.Level], record.Message, fields...)
	}
}
