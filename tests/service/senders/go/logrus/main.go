// logrus: its JSONFormatter, over TCP.
package main

import (
	"github.com/sirupsen/logrus"

	"logspool/tests/senders/common"
)

var levels = map[string]logrus.Level{
	"DEBUG": logrus.DebugLevel, "INFO": logrus.InfoLevel, "WARNING": logrus.WarnLevel, "ERROR": logrus.ErrorLevel,
	"CRITICAL": logrus.FatalLevel,
}

func main() {
	connection := common.Connect()
	defer connection.Close()
	log := logrus.New()
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: "2006-01-02T15:04:05.999999999Z07:00"})
	log.SetLevel(logrus.TraceLevel)
	log.SetOutput(connection)
	for _, record := range common.Read() {
		entry := log.WithField("logger", "shop.cart").WithFields(record.Fields)
		if record.Raises {
			entry = entry.WithError(common.Failure)
		}
		// At this level `Log` does not end the program.
		entry.Log(levels[record.Level], record.Message)
	}
}
