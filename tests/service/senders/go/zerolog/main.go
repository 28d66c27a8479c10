// zerolog: its JSON lines over TCP.
package main

import (
	"github.com/rs/zerolog"

	"logspool/tests/senders/common"
)

var levels = map[string]zerolog.Level{
	"DEBUG": zerolog.DebugLevel, "INFO": zerolog.InfoLevel, "WARNING": zerolog.WarnLevel,
	"ERROR": zerolog.ErrorLevel, "CRITICAL": zerolog.FatalLevel,
}

func main() {
	connection := common.Connect()
	defer connection.Close()
	zerolog.TimeFieldFormat = zerolog.TimeFormatUnixMicro
	log := zerolog.New(connection).With().Timestamp().Str("logger", "shop.cart").Logger()
	for _, record := range common.Read() {
		event := log.WithLevel(levels[record.Level]).Fields(record.Fields)
		if record.Raises {
			event = event.Err(common.Failure)
		}
		event.Msg(record.Message)
	}
}
