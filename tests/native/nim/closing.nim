# closing COUNT: opens and closes COUNT outputs one after the other, while another output stays open.
import std/[os, strutils]
import logspool

let lasting = addLogger("lasting.log", "%(message)s")
for number in 0 ..< parseInt(paramStr(1)):
  let output = addLogger($(number mod 50) & ".log", "%(message)s")
  info number
  closeLogger output
closeLogger lasting
info "nowhere"
try:
  closeLogger lasting
except LogspoolError as error:
  echo error.msg
addLogger("lasting.log", "%(message)s")
info "again"
