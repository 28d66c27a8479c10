## Logs numbers, closes every descriptor on the way, and opens its own files with their numbers.
import std/[os, posix, strutils]
import logspool

addLogger(paramStr(1), "%(message)s")
let count = parseInt(paramStr(2))
info 0
doAssert flushLogs(60.0)
for number in 3 ..< 4096: discard close(cint(number))
var own: seq[string]
for number in 0 ..< 30:
  own.add "own-" & $number
  let file = posix.open(own[^1].cstring, O_RDWR or O_CREAT, 0o600)
  doAssert file >= 0 and write(file, "payload".cstring, 7) == 7
for number in 1 ..< count: info number
let flushed = flushLogs(60.0)
var changed = 0
for name in own:
  if readFile(name) != "payload": inc changed
echo ord(flushed), " ", changed
