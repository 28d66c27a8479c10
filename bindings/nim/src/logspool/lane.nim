## Writes a record into the calling thread's lane without a call of the library.
##
## This is the list of rules of `crates/logspool-lanes/src/lane/cursor.rs` in Nim; `logspool.h` has its steps, which
## the comments below name. Records that the lane cannot take now, or that are not ASCII, go through `logspool_emit`,
## which also replaces ill-formed text.

import capi

const
  headBytes = 24
  errorLevel = 40'u16
  tagTrue = 2'u8
  tagFalse = 3'u8
  relaxed = 0.cint
  acquire = 2.cint
  release = 3.cint
  sequential = 5.cint

proc atomicLoad(word: ptr uint32, order: cint): uint32 {.importc: "__atomic_load_n", nodecl.}
proc atomicLoad(word: ptr uint64, order: cint): uint64 {.importc: "__atomic_load_n", nodecl.}
proc atomicLoad(word: ptr ptr Handle, order: cint): ptr Handle {.importc: "__atomic_load_n", nodecl.}
proc atomicStore(word: ptr uint32, value: uint32, order: cint) {.importc: "__atomic_store_n", nodecl.}
proc atomicStore(word: ptr uint64, value: uint64, order: cint) {.importc: "__atomic_store_n", nodecl.}
proc atomicStore(word: ptr ptr Handle, value: ptr Handle, order: cint) {.importc: "__atomic_store_n", nodecl.}
proc signalFence(order: cint) {.importc: "__atomic_signal_fence", nodecl.}

when defined(amd64):
  proc cycles(): uint64 {.importc: "__builtin_ia32_rdtsc", nodecl.}

type
  Timespec {.importc: "struct timespec", header: "<time.h>".} = object
    tv_sec: clong
    tv_nsec: clong

  Site* = object
    ## One call site. The handle is nil until it is defined.
    id*: Id
    handle: ptr Handle

var
  monotonic {.importc: "CLOCK_MONOTONIC", header: "<time.h>".}: cint
  view {.threadvar.}: ptr View

proc clockGettime(clock: cint, time: var Timespec): cint {.importc: "clock_gettime", header: "<time.h>", discardable.}

proc define*(site: var Site, id: Id) =
  ## Notes the id of the site. Two threads that define the site at the same time get two ids of it, of which both stay
  ## right.
  site.id = id
  if id != 0:
    atomicStore(addr site.handle, siteHandle(id), release)

{.push checks: off, stackTrace: off, profiler: off.}

proc stamp(clock: uint32): uint64 {.inline.} =
  when defined(amd64):
    if likely(clock == clockTsc):
      return cycles()
  var now: Timespec
  clockGettime(monotonic, now)
  uint64(now.tv_sec) * 1_000_000_000'u64 + uint64(now.tv_nsec)

proc isAscii(text: pointer, length: int): bool {.inline.} =
  const high = 0x8080808080808080'u64
  let bytes = cast[ptr UncheckedArray[byte]](text)
  var index = 0
  while index + 8 <= length:
    var word: uint64
    copyMem(addr word, addr bytes[index], 8)
    if (word and high) != 0:
      return false
    index += 8
  while index < length:
    if bytes[index] >= 0x80'u8:
      return false
    inc index
  true

proc valueBytes(arg: Arg): int {.inline.} =
  ## Bytes of a value after its tag. -1: the lane does not take it here.
  case arg.kind
  of argInt, argUint: 8
  of argBool: 0
  of argText:
    if isAscii(arg.value.p, int(arg.length)): 4 + int(arg.length) else: -1
  else: -1

proc store(to: ptr UncheckedArray[byte], arg: Arg): ptr UncheckedArray[byte] {.inline.} =
  ## Stores a value with its tag. Returns the place after it.
  var bytes = 1
  case arg.kind
  of argBool:
    to[0] = if arg.value.i != 0: tagTrue else: tagFalse
  of argText:
    to[0] = byte(argText)
    copyMem(addr to[1], unsafeAddr arg.length, 4)
    copyMem(addr to[5], arg.value.p, int(arg.length))
    bytes = 5 + int(arg.length)
  else:
    to[0] = byte(arg.kind)
    copyMem(addr to[1], unsafeAddr arg.value, 8)
    bytes = 9
  cast[ptr UncheckedArray[byte]](addr to[bytes])

proc storeHead(to: ptr UncheckedArray[byte], head: Head) {.inline.} =
  ## Stores the fields one by one. A copy of the whole object would load 16 bytes right after four stores to them, and
  ## such a load waits until all earlier stores have reached the cache.
  let place = cast[ptr Head](to)
  place.length = head.length
  place.site = head.site
  place.route = head.route
  place.level = head.level
  place.flags = head.flags
  place.ticks = head.ticks

proc tryWrite*(logger: ptr Handle, site: var Site, level: uint16, args: ptr UncheckedArray[Arg], count: int): bool {.
    inline.} =
  ## Writes a record. False: the caller must take the slow path; nothing was written.
  let lane = view
  # Step 1.
  if unlikely(lane.isNil or lane.version != viewVersion or lane.flags != 0):
    return false
  let siteHandle = atomicLoad(addr site.handle, acquire)
  if unlikely(siteHandle.isNil or atomicLoad(addr logger.needs, relaxed) != 0):
    return false
  var bytes = headBytes
  for index in 0 ..< count:
    let added = valueBytes(args[index])
    if unlikely(added < 0):
      return false
    bytes += 1 + added
  let
    needed = uint64(bytes + 7) and not 7'u64
    ringBytes = lane.bytes
  if unlikely(lane.generation != atomicLoad(lane.generationWord, relaxed) or needed > ringBytes div 4):
    return false
  # Step 2. A mark that is set belongs to a call that this one interrupts.
  let busy = lane.busyWord
  if unlikely(atomicLoad(busy, relaxed) != 0):
    return false
  atomicStore(busy, 1'u32, relaxed)
  signalFence(sequential)
  # Step 3. Between the mark and here a signal handler may have renewed the view, so everything is read now.
  let
    loggerIds = atomicLoad(addr logger.ids, relaxed)
    siteIds = atomicLoad(addr siteHandle.ids, relaxed)
    pipeline = lane.pipeline and 0xffff_ffff'u64
    start = lane.head
    size = lane.bytes
    offset = (start - lane.start) and (size - 1)
    skipped = if needed > size - offset: size - offset else: 0
    reserved = if level < errorLevel: size div 8 else: 0
    isCurrent = lane.generation == atomicLoad(lane.generationWord, relaxed) and busy == lane.busyWord and size == ringBytes and
      (loggerIds shr 32) == pipeline and (siteIds shr 32) == pipeline and (siteIds and 0xffff_ffff'u64) != 0
  # Step 4.
  if unlikely(not isCurrent or start + skipped + needed + reserved > lane.limit):
    atomicStore(busy, 0'u32, release)
    return false
  # Steps 5 and 6.
  let head = Head(length: uint32(bytes), site: uint32(siteIds and 0xffff_ffff'u64),
    route: uint32(loggerIds and 0xffff_ffff'u64), level: level, flags: 0, ticks: stamp(lane.clock))
  var place = cast[ptr UncheckedArray[byte]](addr lane.ring[offset])
  if unlikely(skipped != 0):
    if skipped >= uint64(headBytes):
      var filler = head
      filler.length = uint32(skipped)
      filler.flags = flagFiller
      storeHead(place, filler)
    place = cast[ptr UncheckedArray[byte]](lane.ring)
  storeHead(place, head)
  place = cast[ptr UncheckedArray[byte]](addr place[headBytes])
  for index in 0 ..< count:
    place = store(place, args[index])
  # Step 7.
  let ending = start + skipped + needed
  lane.head = ending
  atomicStore(lane.headWord, ending, release)
  atomicStore(busy, 0'u32, release)
  # Step 8.
  if unlikely(level >= errorLevel or ending >= lane.wakeAt):
    wake(level)
  true

{.pop.}

proc writeSlowly*(logger, site: Id, args: ptr UncheckedArray[Arg], count: int) =
  ## Writes a record by a call of the library. Afterwards the thread has its view.
  discard emit(logger, site, cast[ptr Arg](args), csize_t(count))
  if view.isNil or view.generation != atomicLoad(view.generationWord, relaxed):
    view = laneView()
