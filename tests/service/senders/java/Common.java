import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.Map;

/** What the programs in Java share: PROGRAM RECORDS TCP-PORT UDP-PORT HTTP-PORT. */
final class Common {
    /** One record to send. */
    record Sent(String message, String level, Map<String, Object> fields, boolean raises) {}

    private Common() {}

    static Sent[] records(String[] arguments) throws Exception {
        System.setProperty("tcp", arguments[1]);
        System.setProperty("udp", arguments[2]);
        ObjectMapper mapper = new ObjectMapper();
        JsonNode all = mapper.readTree(new File(arguments[0]));
        Sent[] records = new Sent[all.size()];
        for (int place = 0; place < records.length; place++) {
            JsonNode one = all.get(place);
            @SuppressWarnings("unchecked")
            Map<String, Object> fields = mapper.convertValue(one.get("fields"), Map.class);
            records[place] =
                    new Sent(one.get("message").asText(), one.get("level").asText(), fields, one.get("raises").asBoolean());
        }
        return records;
    }

    static IllegalStateException failure() {
        return new IllegalStateException("no such customer: Zoë");
    }
}
