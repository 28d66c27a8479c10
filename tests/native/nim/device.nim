# Logs to a full device.
import std/json
import logspool

configureQueue(%*{"shutdown_timeout": 0.2})
addLogger "/dev/full"
info "nowhere"
echo flushLogs(0.2)
