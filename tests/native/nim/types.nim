## Logs one value of each type, and integer constants in each form, and writes their texts by `$` to a second file.
import std/[complex, deques, intsets, json, lists, monotimes, options, os, rationals, sets, strutils, tables, times, uri]
import logspool, shapes

type
  Local = object
    name: string
    secret: string
  Color = enum red = "rot", green
  Pair = tuple[left: int, right: string]
  Small = range[1 .. 9]
  Count = int
  Flags = set[Color]
  Shape = object
    case isRound: bool
    of true: radius: float
    of false: side: int
  Word = distinct string

proc `$`(local: Local): string = local.name & " ***"
proc `$`(word: Word): string {.borrow.}

var expected: seq[string]

template same(value: untyped) =
  ## One record with only the value, one with text before and after it.
  info value
  expected.add $value
  warn "a ", value, " b"
  expected.add "a " & $value & " b"

proc generic[T](value: T) = same value
proc changed(text: var string, list: openArray[int], number: Natural) =
  same text
  same @list
  same number
proc silent(number: int) {.raises: [].} = info "silent ", number
iterator numbered(): int {.closure.} =
  info "in an iterator"
  yield 1

const
  three = 3
  word = "a constant"
  big = high(uint64)
  list = [1, 2]
let
  small: Small = 4
  count: Count = 5
  letters = {'a': 1, 'b': 2}.toTable
  absent: cstring = nil
var text = "text"
addLogger(paramStr(1), "%(message)s")

# Of the standard library.
same some(1)
same none(string)
same some(some("x"))
same letters
same {"a": 1}.toOrderedTable
same ["a", "a"].toCountTable
same newTable({1: "x"})
same toHashSet([1])
same toIntSet([3])
same toOrderedSet([1, 2])
same initDuration(seconds = 3, milliseconds = 5)
same initTimeInterval(days = 2)
same dateTime(2024, mJan, 2, 3, 4, 5, 6, utc())
same fromUnix(0).utc
same dSun
same parseUri("http://a.example/b?c=d")
same %*{"a": [1, nil, 2.5]}
same complex(1.0, 2.0)
same 3 // 4
same toDeque([1, 2])
same toSinglyLinkedList([1, 2])
same FileInfo().kind
same fpUserRead

# Of the language.
same 'c'
same '\0'
same true
same 2.5
same 2.5'f32
same NaN
same -0.0
same 1'i8
same 255'u8
same 1'i16
same 1'u16
same 1'i32
same 1'u32
same low(int64)
same big
same small
same count
same Natural(3)
same "literal"
same "a\0b"
same word
same text
same text & "!"
same text[0 .. 1]
same cstring("of C")
same absent
same ""
same @["a", "b"]
same [1.5]
same list
same newSeq[int]()
same (1, "a")
same (left: 1, right: "b")
same Pair((2, "c"))
same {'a' .. 'c'}
same Flags({red})
same 1 .. 3
same red
same green
same Shape(isRound: true, radius: 1.5)
same newException(ValueError, "what failed").msg
same int
same typeof(text)

# Integer constants.
same 5
same -5
same three
same three + 1
same 1 + 2
same len("abc")
same sizeof(int)
same ord('a')
same high(int)
same 0xff
same 0b101
same 1_000
same (1 shl 40)
same int8(5)
same uint(5)
same static(2 + 3)
same (if three > 2: 1 else: 2)
same list.len
same list[0]
same 'a'.int

# With a `$` of the program.
same Local(name: "ada", secret: "x")
same @[Local(name: "ada", secret: "x")]
same some(Local(name: "ada", secret: "x"))
same Word("borrowed")
same happy
same [happy, sad]
same Meters(3)
same Name("n")
same Box[int](held: 3)
same Box[Mood](held: sad)
same Node(number: 2)
same Node(nil)
same Base(Derived())
same Handler(proc (x: int): int {.nimcall.} = x)

# From other places.
generic Local(name: "bob", secret: "y")
generic 7
generic happy
changed(text, [1, 2], 3)
wrapped Local(name: "eve", secret: "z")
expected.add "wrapped eve ***"
wrapped 5
expected.add "wrapped 5"
forwarded Local(name: "sam", secret: "z")
expected.add "forwarded sam ***"
silent 4
expected.add "silent 4"
let numbers = numbered
discard numbers()
expected.add "in an iterator"
block:
  proc `$`(mood: Mood): string = "hidden"
  info happy
  expected.add "hidden"
writeFile(paramStr(2), expected.join("\n") & "\n")
doAssert flushLogs(60)
