// zap: the JSON of its production configuration, over TCP.
package main

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"logspool/tests/senders/common"
)

// The level above errors that does not end the program.
var levels = map[string]zapcore.Level{
	"DEBUG": zap.DebugLevel, "INFO": zap.InfoLevel, "WARNING": zap.WarnLevel, "ERROR": zap.ErrorLevel,
	"CRITICAL": zap.DPanicLevel,
}

func main() {
	connection := common.Connect()
	defer connection.Close()
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	core := zapcore.NewCore(encoder, zapcore.AddSync(connection), zap.DebugLevel)
	log := zap.New(core, zap.AddStacktrace(zap.ErrorLevel)).Named("shop.cart")
	for _, record := range common.Read() {
		var fields []zap.Field
		for name, value := range record.Fields {
			fields = append(fields, zap.Any(name, value))
		}
		if record.Raises {
			fields = append(fields, zap.Error(common.Failure))
		}
		log.Log(levels[record.Level], record.Message, fields...)
	}
}
