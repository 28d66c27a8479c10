import logspool

addLogger stdout
addLogger open("x.log", fmWrite)

let x = 3
info "Hello World!"
info "All ", x, " Bananas"
warn "a {brace} and ", 2.5, " ", @[1, 2], " ", 'c', " ", true
debug "sum ", x + 4, " of ", "text" & "s"
