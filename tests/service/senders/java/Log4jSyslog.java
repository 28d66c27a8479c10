/** Log4j 2: its appender for RFC 5424, over TCP. */
final class Log4jSyslog {
    private Log4jSyslog() {}

    public static void main(String[] arguments) throws Exception {
        Log4j.send("log4j-syslog.xml", arguments);
    }
}
