import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.ThreadContext;

/** Log4j 2 with the configuration that the first argument names. Fields are texts of its context. */
final class Log4j {
    private Log4j() {}

    static void send(String configuration, String[] arguments) throws Exception {
        Common.Sent[] records = Common.records(arguments);
        System.setProperty("log4j2.configurationFile", configuration);
        Logger log = LogManager.getLogger("shop.cart");
        for (Common.Sent record : records) {
            ThreadContext.clearMap();
            record.fields().forEach((name, value) -> ThreadContext.put(name, String.valueOf(value)));
            Level level =
                    switch (record.level()) {
                        case "WARNING" -> Level.WARN;
                        case "CRITICAL" -> Level.FATAL;
                        default -> Level.valueOf(record.level());
                    };
            log.log(level, record.message(), record.raises() ? Common.failure() : null);
        }
        LogManager.shutdown();
    }
}
