## Logs from asynchronous procedures, with values that have to be waited for.
import std/[asyncdispatch, options, os]
import logspool

proc later(number: int): Future[int] {.async.} =
  info "before ", number
  await sleepAsync(1)
  info "after ", number, " ", some(number)
  return number + 1

proc main() {.async.} =
  var text = "kept"
  info "sum ", await later(1), " and ", (await later(2)) + 1, " ", text
  let both = await all(later(10), later(10))
  info both

addLogger(paramStr(1), "%(message)s")
waitFor main()
