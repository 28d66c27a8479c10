## Shows the messages of wrong inputs.
import std/json
import logspool

template shown(call: untyped) =
  try:
    call
    echo "no error"
  except LogspoolError as error:
    echo error.msg

info "before the first output nothing is logged"
shown addLogger("/no/such/folder/x.log")
shown addLogger("x.log", "%(message)q")
shown addLogger(File(nil))
shown configureQueue(%*{"queue_byte": 1})
shown configureQueue(%*{"queue_bytes": 1})
