"""graypy: GELF in compressed datagrams."""

import common
import graypy

common.log_all(graypy.GELFUDPHandler(common.HOST, common.UDP))
