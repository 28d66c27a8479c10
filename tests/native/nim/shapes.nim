## Types with a `$` of their own, and a generic wrapper around a call: for `types.nim`, which imports this module.
import logspool

type
  Mood* = enum
    happy, sad
  Meters* = distinct int
  Name* = distinct string
  Box*[T] = object
    held*: T
  Node* = ref object
    number*: int
  Base* = ref object of RootObj
  Derived* = ref object of Base
  Handler* = proc (x: int): int {.nimcall.}

proc `$`*(mood: Mood): string = (if mood == happy: ":)" else: ":(")
proc `$`*(length: Meters): string = $int(length) & " m"
proc `$`*(name: Name): string = "<" & string(name) & ">"
proc `$`*[T](box: Box[T]): string = "[" & $box.held & "]"
proc `$`*(node: Node): string = (if node.isNil: "no node" else: "node " & $node.number)
method text*(base: Base): string {.base.} = "base"
method text*(derived: Derived): string = "derived"
proc `$`*(base: Base): string = base.text
proc `$`*(handler: Handler): string = "a handler"

proc wrapped*[T](value: T) =
  ## Logs a value whose type may be unknown here.
  info "wrapped ", value

template forwarded*(value: untyped) =
  ## Logs from a template.
  info "forwarded ", value
