/** Log4j 2: its JsonTemplateLayout with the template of ECS, over TCP. */
final class Log4jTemplate {
    private Log4jTemplate() {}

    public static void main(String[] arguments) throws Exception {
        Log4j.send("log4j-template.xml", arguments);
    }
}
