## Writes a million lines `[date][hello]: Hello World!` by one of three ways: hello WAY FILE
##
## `logspool`: this project. `channel`: a worker thread that takes texts from a channel, keeps the text of the second, and
## flushes when the channel is empty. `raw`: a loop that appends to one buffer and writes it in blocks of 256 KiB.
## `none`: nothing. The program shows the most memory that it has had.
import std/[json, os, strutils, times]
import logspool

const
  lineCount = 1_000_000
  stamp = "yyyy-MM-dd HH:mm:ss"

var
  texts: Channel[string]
  worker: Thread[string]

proc write(path: string) {.thread.} =
  let file = open(path, fmWrite)
  var
    second = 0'i64
    head = ""
  while true:
    var (has, text) = texts.tryRecv()
    if not has:
      file.flushFile()
      text = texts.recv()
    if text.len == 0:
      break
    let now = getTime()
    if now.toUnix != second:
      second = now.toUnix
      head = "[" & now.format(stamp) & "][hello]: "
    file.write(head, text, "\n")
  file.close()

proc byChannel(path: string) =
  texts.open()
  createThread(worker, write, path)
  for _ in 0 ..< lineCount:
    texts.send("Hello World!")
  texts.send("")
  joinThread(worker)

proc byRaw(path: string) =
  let file = open(path, fmWrite)
  let head = "[" & getTime().format(stamp) & "][hello]: "
  var buffer = newStringOfCap(300_000)
  for _ in 0 ..< lineCount:
    buffer.add head
    buffer.add "Hello World!\n"
    if buffer.len > 262_144:
      discard file.writeBuffer(addr buffer[0], buffer.len)
      buffer.setLen 0
  discard file.writeBuffer(addr buffer[0], buffer.len)
  file.close()

proc byLogspool(path: string) =
  # Lossless: a call that finds no room waits.
  configureQueue(%*{"blocking_levels": [20], "blocking_timeout": 60})
  addLogger path
  for _ in 0 ..< lineCount:
    info "Hello World!"

proc showMemory() =
  for line in lines("/proc/self/status"):
    if line.startsWith("VmHWM:"):
      echo %*{"rss_mb": line.splitWhitespace[1].parseInt / 1024}

case paramStr(1)
of "logspool": byLogspool(paramStr(2))
of "channel": byChannel(paramStr(2))
of "raw": byRaw(paramStr(2))
of "none": discard
else: quit "unknown way: use logspool, channel, raw or none"
showMemory()
