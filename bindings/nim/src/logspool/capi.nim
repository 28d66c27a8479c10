## The functions of `logspool.h` that the module uses.
##
## The library and its header are in `target/native` of the repository (`make native`), or in the folder that
## `-d:logspoolDir=FOLDER` names.

import std/os

const logspoolDir* {.strdefine.} = currentSourcePath().parentDir.parentDir.parentDir.parentDir.parentDir / "target" / "native"

when not fileExists(logspoolDir / "include" / "logspool.h"):
  {.error: "there is no logspool.h in " & logspoolDir & "/include: run `make native`, or name its folder by " &
    "-d:logspoolDir=FOLDER".}

{.passC: "-I" & quoteShell(logspoolDir / "include").}
{.passL: "-L" & quoteShell(logspoolDir / "lib") & " -llogspool -Wl,-rpath," & quoteShell(logspoolDir / "lib").}

type
  Id* = uint32

  SiteInfo* {.importc: "struct logspool_site_info", header: "logspool.h", bycopy.} = object
    size*, line*: uint32
    file*, function*, message*: cstring
    level*: uint16
    grammar*, flags*: uint8
    typeCount* {.importc: "type_count".}: uint32
    types*: ptr uint8

  ArgValue* {.importc: "__typeof__(((struct logspool_arg *)0)->value)", header: "logspool.h", union.} = object
    i*: int64
    u*: uint64
    p*: pointer

  Arg* {.importc: "struct logspool_arg", header: "logspool.h", bycopy.} = object
    kind* {.importc: "type".}: uint32
    length*: uint32
    value*: ArgValue

  View* {.importc: "struct logspool_view", header: "logspool.h", bycopy.} = object
    version*, flags*: uint32
    pipeline*, generation*: uint64
    generationWord* {.importc: "generation_word".}: ptr uint64
    headWord* {.importc: "head_word".}: ptr uint64
    busyWord* {.importc: "busy_word".}: ptr uint32
    ring*: ptr UncheckedArray[uint8]
    start*, bytes*, head*, limit*: uint64
    wakeAt* {.importc: "wake_at".}: uint64
    clock*, thread*: uint32

  Head* {.importc: "struct logspool_head", header: "logspool.h", bycopy.} = object
    length*, site*, route*: uint32
    level*, flags*: uint16
    ticks*: uint64

  Handle* {.importc: "struct logspool_handle", header: "logspool.h", bycopy.} = object
    ids*: uint64
    level*, needs*: uint32

const
  ok* = 0.cint
  viewVersion* = 1'u32
  flagFiller* = 2'u16
  clockTsc* = 2'u32
  argBool* = 2'u32
  argInt* = 4'u32
  argText* = 6'u32
  argUint* = 11'u32
  fmtGrammar* = 1'u8

# The rest is written by scripts/c_interface.py.

proc configure*(options_json: cstring): cint
  {.importc: "logspool_configure", header: "logspool.h".}
proc sinkOpen*(address: cstring, format_json: cstring): Id
  {.importc: "logspool_sink_open", header: "logspool.h".}
proc logger*(name: cstring, level: uint16, sinks: ptr Id, count: csize_t): Id
  {.importc: "logspool_logger", header: "logspool.h".}
proc loggerLevel*(logger: Id, level: uint16): cint
  {.importc: "logspool_logger_level", header: "logspool.h".}
proc site*(site: ptr SiteInfo): Id
  {.importc: "logspool_site", header: "logspool.h".}
proc emit*(logger: Id, site: Id, args: ptr Arg, count: csize_t): cint
  {.importc: "logspool_emit", header: "logspool.h".}
proc emitText*(logger: Id, level: uint16, text: cstring, length: csize_t, file: cstring, line: uint32, function: cstring): cint
  {.importc: "logspool_text", header: "logspool.h".}
proc reserve*(logger: Id, site: Id, value_bytes: csize_t): pointer
  {.importc: "logspool_reserve", header: "logspool.h".}
proc commit*(): cint
  {.importc: "logspool_commit", header: "logspool.h".}
proc abandon*(): cint
  {.importc: "logspool_abandon", header: "logspool.h".}
proc flush*(timeout_seconds: cdouble): cint
  {.importc: "logspool_flush", header: "logspool.h".}
proc drain*(timeout_seconds: cdouble): cint
  {.importc: "logspool_drain", header: "logspool.h".}
proc stats*(buffer: cstring, bytes: csize_t): clong
  {.importc: "logspool_stats", header: "logspool.h".}
proc recover*(folder: cstring): clonglong
  {.importc: "logspool_recover", header: "logspool.h".}
proc lastError*(): cstring
  {.importc: "logspool_last_error", header: "logspool.h".}
proc lastStatus*(): cint
  {.importc: "logspool_last_status", header: "logspool.h".}
proc generation*(): uint64
  {.importc: "logspool_generation", header: "logspool.h".}
proc laneView*(): ptr View
  {.importc: "logspool_lane_view", header: "logspool.h".}
proc loggerHandle*(logger: Id): ptr Handle
  {.importc: "logspool_logger_handle", header: "logspool.h".}
proc siteHandle*(site: Id): ptr Handle
  {.importc: "logspool_site_handle", header: "logspool.h".}
proc wake*(level: uint16)
  {.importc: "logspool_wake", header: "logspool.h".}
proc loggerFind*(name: cstring): Id
  {.importc: "logspool_logger_find", header: "logspool.h".}
proc loggerClose*(logger: Id): cint
  {.importc: "logspool_logger_close", header: "logspool.h".}
proc sinkClose*(sink: Id): cint
  {.importc: "logspool_sink_close", header: "logspool.h".}
