## Logs values of many types, and writes their texts by Nim's own `$` to a second file.
import std/[json, os, strutils]
import logspool

type
  Color = enum red, green
  Point = object
    x: int
    y: float

var expected: seq[string]

proc called(): int =
  var calls {.global.} = 0
  inc calls
  calls

template both(args: varargs[string, `$`]) =
  expected.add join(args)

addLogger(paramStr(1), "%(message)s")
let text = "text with {} and \"quotes\" é"
let empty = ""
info text, 1, " ", -2'i8, " ", 3'u8, " ", high(int64), " ", low(int64), " ", high(uint64)
both text, 1, " ", -2'i8, " ", 3'u8, " ", high(int64), " ", low(int64), " ", high(uint64)
info 1.0, " ", 0.1, " ", 1e16, " ", 1e-5, " ", Inf, " ", NaN, " ", 0.5'f32
both 1.0, " ", 0.1, " ", 1e16, " ", 1e-5, " ", Inf, " ", NaN, " ", 0.5'f32
info true, false, 'c', red, " ", @[1, 2], " ", [3.5], " ", Point(x: 1, y: 2.5), " ", ("a", 1), " ", {'a', 'b'}
both true, false, 'c', red, " ", @[1, 2], " ", [3.5], " ", Point(x: 1, y: 2.5), " ", ("a", 1), " ", {'a', 'b'}
info "{", empty, "}", " {{x}} ", cstring("of C"), " ", %*{"a": [1, nil]}
both "{", empty, "}", " {{x}} ", cstring("of C"), " ", %*{"a": [1, nil]}
info "only text {}"
both "only text {}"
info called(), " ", called()
both 1, " ", 2
debug "below nothing"
both "below nothing"
logLevel(lvlWarn)
info called()
warn repeat('x', 300_000)
both repeat('x', 300_000)
logLevel(lvlTrace)
info called()
both 3
trace "", called()
both 4
writeFile(paramStr(2), expected.join("\n") & "\n")
doAssert flushLogs()
doAssert logLevel() == lvlTrace
