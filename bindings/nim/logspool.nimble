version     = "0.1.0"
author      = "The logspool authors"
description = "Logging that costs a program nothing and loses nothing"
license     = "MIT OR Apache-2.0"
srcDir      = "src"

requires "nim >= 1.6.0"
