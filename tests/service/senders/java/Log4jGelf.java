/** Log4j 2: its GelfLayout, in compressed datagrams. */
final class Log4jGelf {
    private Log4jGelf() {}

    public static void main(String[] arguments) throws Exception {
        Log4j.send("log4j-gelf.xml", arguments);
    }
}
