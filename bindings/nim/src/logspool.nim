## logspool for Nim: logging that makes its lines in another thread and loses no line.
##
## .. code-block:: nim
##   import logspool
##
##   addLogger stdout
##   addLogger open("x.log", fmAppend)
##   let x = 3
##   info "All ", x, " Bananas"
##
## writes ``[2016-01-28 20:14:04][example]: All 3 Bananas`` to both outputs. A call copies text, integers, `bool` and
## `char` into the queue of its thread; the text of every other value is made by `$` in the call. Everything is written
## at the end of the program and at `quit`. After a kill, the next program that writes to the file delivers the rest.

import std/[json, locks, macros, os, strutils]
import logspool/[capi, lane]

type
  Output* = distinct Id
    ## An output of `addLogger`, for `closeLogger`.

  Level* = enum
    ## How important a record is. The numbers are the levels of Python's logging.
    lvlTrace = 5, lvlDebug = 10, lvlInfo = 20, lvlNotice = 25, lvlWarn = 30, lvlError = 40, lvlFatal = 50

  LogspoolError* = object of CatchableError
    ## An output or an option that cannot be used. The message says what to change.

const
  logspoolFloor* {.intdefine.} = 0
    ## Calls of a lower level than this number make no code: `-d:logspoolFloor=20`.
  defaultFormat* = "[%(asctime)s][%(module)s]: %(message)s"
    ## The form of a line, in the style of Python's logging.
  maxOutputs = 64

var
  lock: Lock
  outputs: array[maxOutputs, Id]
  outputCount: int
  program: Id
  handle: ptr Handle
  level: uint16 = uint16(lvlTrace.ord)

initLock lock

proc fail(what: string) {.noreturn.} =
  raise newException(LogspoolError, what & ": " & $lastError())

proc useOutputs() =
  ## Gives the program's logger the outputs that are open.
  let former = program
  if outputCount > 0:
    program = logger("nim", level, addr outputs[0], csize_t(outputCount))
    if program != 0:
      handle = loggerHandle(program)
  else:
    program = 0
  # Each definition counts as a use of the logger; the program has one.
  if former != 0:
    discard loggerClose(former)

proc addOutput(address, format, dateFormat: string, lowest: Level): Output =
  let spec = $(%*{"template": format, "date_format": dateFormat, "milliseconds": nil, "level": lowest.ord})
  let sink = sinkOpen(address.cstring, spec.cstring)
  if sink == 0:
    fail("the output " & address & " cannot be opened")
  withLock lock:
    if outputCount == maxOutputs:
      discard sinkClose(sink)
      raise newException(LogspoolError, "a program has at most " & $maxOutputs & " outputs: close one")
    outputs[outputCount] = sink
    inc outputCount
    useOutputs()
  if program == 0:
    fail("the output " & address & " cannot be used")
  Output(sink)

proc addLogger*(path: string, format = defaultFormat, dateFormat = "%Y-%m-%d %H:%M:%S", level = lvlTrace): Output {.
    discardable.} =
  ## Appends lines to the file `path`, which is created where it is missing. `format` is in the style of Python's
  ## logging, `dateFormat` in the style of `strftime`. Records below `level` are left out of this output. Raises
  ## `LogspoolError` if the file cannot be opened.
  if '\0' in path:
    raise newException(LogspoolError, "a path holds a NUL: " & path.escape)
  addOutput(path, format, dateFormat, level)

proc addLogger*(file: File, format = defaultFormat, dateFormat = "%Y-%m-%d %H:%M:%S", level = lvlTrace): Output {.
    discardable.} =
  ## Writes lines to an open file, after the earlier output of the program. The file must stay open. Control characters
  ## in values are escaped if it is standard output or error, or no file on a disk.
  if file.isNil:
    raise newException(LogspoolError, "the file is nil: open it first")
  file.flushFile()
  addOutput("fd:" & $file.getFileHandle(), format, dateFormat, level)

proc closeLogger*(output: Output) =
  ## Closes an output. Earlier records are written; later records do not go there. Its place is free for another output.
  ## Raises `LogspoolError` if it is closed.
  withLock lock:
    let place = outputs[0 ..< outputCount].find(Id(output))
    if place < 0:
      raise newException(LogspoolError, "the output is closed already")
    for next in place + 1 ..< outputCount:
      outputs[next - 1] = outputs[next]
    dec outputCount
    useOutputs()
    discard sinkClose(Id(output))

proc logLevel*(): Level =
  ## The lowest level that is logged.
  for known in [lvlTrace, lvlDebug, lvlInfo, lvlNotice, lvlWarn, lvlError, lvlFatal]:
    if uint16(known.ord) == level:
      return known

proc logLevel*(lowest: Level) =
  ## Changes the lowest level that is logged. The next call of each thread sees it.
  withLock lock:
    level = uint16(lowest.ord)
    if program != 0:
      discard loggerLevel(program, level)

proc configureQueue*(options: JsonNode) =
  ## Sets options of the queue by name, as Python's `logspool.install` has them: `configureQueue(%*{"queue_bytes":
  ## 1048576})`. Call it before the first output. Raises `LogspoolError` for an unknown or bad option.
  if configure(($options).cstring) != ok:
    fail("the options cannot be used")

proc flushLogs*(seconds = 5.0): bool {.discardable.} =
  ## Waits until everything that was logged before is written, for at most `seconds`. Returns whether it is.
  flush(seconds.cdouble) == ok

proc isAbove(number: uint16): bool {.inline.} =
  number >= level and program != 0

proc isLogged*(wanted: Level): bool {.inline.} =
  ## Whether a call of this level is written.
  isAbove(uint16(wanted.ord))

proc toArg[Value](value: Value): Arg {.inline.} =
  ## The type and value as which a value is copied. A text must live until the call of `emit`.
  # One generic procedure: of several overloads Nim 2 finds more than one for an integer constant.
  when Value is SomeSignedInt:
    result.kind = argInt
    result.value.i = int64(value)
  elif Value is SomeUnsignedInt:
    result.kind = argUint
    result.value.u = uint64(value)
  elif Value is bool:
    result.kind = argBool
    result.value.i = int64(ord(value))
  elif Value is cstring:
    result.kind = argText
    result.length = uint32(value.len)
    result.value.p = cast[pointer](value)
  else:
    result.kind = argText
    result.length = uint32(value.len)
    if value.len > 0:
      result.value.p = unsafeAddr value[0]

proc define(file: cstring, line: int, message: cstring, number: uint16): Id =
  var info: SiteInfo
  info.size = uint32(sizeof info)
  info.file = file
  info.line = uint32(line)
  info.function = ""
  info.message = message
  info.level = number
  info.grammar = fmtGrammar
  site(addr info)

proc escaped(text: string): string {.compileTime.} =
  for character in text:
    result.add character
    if character in {'{', '}'}:
      result.add character

proc isCopied(value: NimNode): bool {.compileTime.} =
  value.getTypeInst.typeKind in {ntyInt .. ntyInt64, ntyUInt .. ntyUInt64, ntyBool, ntyString, ntyCString}

proc shown(value: NimNode): NimNode {.compileTime.} =
  ## The call of `$`. The name is looked up where the record is logged: the program may have its own for the type.
  # Without the list Nim 1.6 prefers the `$` of all objects to the `$` of a generic type, if the value is of `varargs`.
  newCall(ident"$", newTree(nnkStmtListExpr, value))

macro logAt(wanted: static Level, args: varargs[typed]): untyped =
  ## Queues a record of the arguments, one after the other.
  if args.len == 0:
    error("there is nothing to log: name a value", args)
  if ord(wanted) < logspoolFloor:
    return newStmtList()
  let place = args[0].lineInfoObj
  var message = ""
  let values = newNimNode(nnkBracket)
  let texts = newStmtList()
  for arg in args:
    # The template is a C string, so a literal with a NUL is an argument.
    if arg.kind in {nnkStrLit .. nnkTripleStrLit} and '\0' notin arg.strVal:
      message.add escaped(arg.strVal)
      continue
    message.add "{}"
    if arg.kind notin AtomicNodes or not arg.isCopied:
      # The value is computed once. Its text, or the value itself, lives until the record is queued.
      let name = genSym(nskLet, "value")
      texts.add newLetStmt(name, if arg.isCopied: arg else: arg.shown)
      values.add newCall(bindSym"toArg", name)
    else:
      values.add newCall(bindSym"toArg", arg)
  let count = values.len
  let (file, line, text) = (newLit place.filename.extractFilename, newLit place.line, newLit message)
  let number = newLit uint16(wanted.ord)
  let site = genSym(nskVar, "site")
  let name = genSym(nskVar, "values")
  var (list, given) = (newNilLit(), newStmtList())
  if count > 0:
    given.add newNimNode(nnkVarSection).add(newIdentDefs(name, newEmptyNode(), values))
    list = quote do:
      cast[ptr UncheckedArray[Arg]](addr `name`[0])
  result = quote do:
    if isAbove(`number`):
      var `site` {.global.}: Site
      `texts`
      `given`
      if not tryWrite(handle, `site`, `number`, `list`, `count`):
        if `site`.id == 0:
          `site`.define(define(`file`, `line`, `text`, `number`))
        if `site`.id != 0:
          writeSlowly(program, `site`.id, `list`, `count`)
        else:
          # Of a site that cannot be defined now only the template is logged; the library counts it if it refuses it.
          discard emitText(program, `number`, `text`, csize_t(len(`text`)), `file`, uint32(`line`), "")

template trace*(args: varargs[untyped]) =
  ## Logs the arguments, one after the other, at `lvlTrace`.
  logAt(lvlTrace, args)

template debug*(args: varargs[untyped]) =
  ## Logs at `lvlDebug`.
  logAt(lvlDebug, args)

template info*(args: varargs[untyped]) =
  ## Logs at `lvlInfo`.
  logAt(lvlInfo, args)

template log*(args: varargs[untyped]) =
  ## Logs at `lvlInfo`, as `info`.
  logAt(lvlInfo, args)

template notice*(args: varargs[untyped]) =
  ## Logs at `lvlNotice`.
  logAt(lvlNotice, args)

template warn*(args: varargs[untyped]) =
  ## Logs at `lvlWarn`.
  logAt(lvlWarn, args)

template error*(args: varargs[untyped]) =
  ## Logs at `lvlError`.
  logAt(lvlError, args)

template fatal*(args: varargs[untyped]) =
  ## Logs at `lvlFatal`. The program continues.
  logAt(lvlFatal, args)
