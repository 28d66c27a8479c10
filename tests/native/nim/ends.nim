## Logs from four threads, then ends as the first argument says.
import std/[os, posix]
import logspool

let output = open(paramStr(2), fmWrite)
output.write "of the program\n"
addLogger(output, "%(message)s")
addLogger(paramStr(3), "%(message)s")

proc work(thread: int) {.thread.} =
  for number in 0 ..< 1000:
    info thread, " ", number

var threads: array[4, Thread[int]]
for index in 0 ..< threads.len:
  createThread(threads[index], work, index)
joinThreads threads
case paramStr(1)
of "quit": quit 0
of "return": discard
of "kill": discard kill(getpid(), SIGKILL)
of "raise": raise newException(ValueError, "the program fails")
else: doAssert false
