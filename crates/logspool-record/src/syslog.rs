//! Words of syslog that its sink and its decoder share.

/// Names of the facilities, by number (RFC 5424, 6.2.1). The names are those of `logging.handlers.SysLogHandler`; the
/// facilities 12 to 15 have no name that receivers agree on.
pub const FACILITIES: [&str; 24] = [
    "kern",
    "user",
    "mail",
    "daemon",
    "auth",
    "syslog",
    "lpr",
    "news",
    "uucp",
    "cron",
    "authpriv",
    "ftp",
    "ntp",
    "security",
    "console",
    "solaris-cron",
    "local0",
    "local1",
    "local2",
    "local3",
    "local4",
    "local5",
    "local6",
    "local7",
];
