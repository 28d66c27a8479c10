## Defines sites until the library takes no more, and logs from a place without a site.
import logspool, logspool/capi

addLogger "a.log", "%(filename)s:%(lineno)d %(message)s"
var
  info = SiteInfo(size: uint32(sizeof SiteInfo), file: "other.nim", function: "", message: "", level: 20)
  count = 0
while site(addr info) != 0:
  inc count
let apples = 3
logspool.info "All ", apples, " Bananas"
echo count
