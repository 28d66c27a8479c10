## Logs in procedures that run after the drain at exit.
import std/[exitprocs, os]
import logspool

type Early = object
  name: string

proc `=destroy`(early: var Early) =
  if early.name.len > 0:
    warn "destroyed"

addExitProc(proc () {.noconv.} = (for number in 0 ..< 3: info "at exit ", number))
let early {.used.} = Early(name: "early")
addLogger(paramStr(1), "%(message)s")
info "in the program"
if paramStr(2) == "quit":
  quit 0
