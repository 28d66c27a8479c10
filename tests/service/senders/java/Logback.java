import ch.qos.logback.classic.LoggerContext;
import java.util.Map;
import net.logstash.logback.marker.Markers;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/** Logback with the encoder for Logstash: JSON lines over TCP. */
final class Logback {
    // SLF4J has no level above errors.
    private static final Map<String, Level> LEVELS =
            Map.of(
                    "DEBUG", Level.DEBUG, "INFO", Level.INFO, "WARNING", Level.WARN,
                    "ERROR", Level.ERROR, "CRITICAL", Level.ERROR);

    private Logback() {}

    public static void main(String[] arguments) throws Exception {
        Common.Sent[] records = Common.records(arguments);
        Logger log = LoggerFactory.getLogger("shop.cart");
        for (Common.Sent record : records) {
            var event = log.atLevel(LEVELS.get(record.level())).addMarker(Markers.appendEntries(record.fields()));
            if (record.raises()) {
                event = event.setCause(Common.failure());
            }
            event.log(record.message());
        }
        ((LoggerContext) LoggerFactory.getILoggerFactory()).stop();
    }
}
