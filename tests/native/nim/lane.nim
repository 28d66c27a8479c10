## Logs from the same places again and again, so that records go into the lane, wrap its ring and take every way around
## it; writes what Nim's own `$` makes of them to a second file.
import std/[json, os, strutils]
import logspool

configureQueue(%*{"blocking_levels": [20, 40], "blocking_timeout": 60})
if paramCount() > 2:
  addLogger(paramStr(1), paramStr(3))
else:
  addLogger(paramStr(1), "%(message)s")
var expected: seq[string]
for number in 0 ..< 20_000:
  # Some texts are not ASCII, and some are too long for the lane.
  let text = if number mod 1000 == 7: "é".repeat(number mod 50)
    elif number mod 5000 == 9: repeat('x', 200_000)
    else: repeat('y', number mod 97)
  info number, " ", -number, " ", uint8(number mod 256), " ", number mod 2 == 0, " ", text, "."
  expected.add $number & " " & $(-number) & " " & $uint8(number mod 256) & " " & $(number mod 2 == 0) & " " & text & "."
  error "all the same"
  expected.add "all the same"
writeFile(paramStr(2), expected.join("\n") & "\n")
doAssert flushLogs(60)
