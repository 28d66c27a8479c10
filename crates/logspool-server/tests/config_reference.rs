//! The page about the configuration is generated from the structs that parse it: `docs/reference/service-config.md`.
//!
//! `LOGSPOOL_BLESS=1 cargo test -p logspool-server --test config_reference` writes it again.

use std::fmt::Write;
use std::path::Path;

use logspool_server::config::Config;
use logspool_server::decoders::levels::SCALES;
use logspool_server::{known_protocols, stores};
use schemars::schema_for;
use serde_json::Value;

const HEAD: &str = "\
# The configuration of `logspool serve`

One TOML file, given with `--config FILE`.
Every key may be left out; the options of the command line go before it.
`logspool check-config FILE` says whether a file can be used.
On SIGHUP the service reads the file again: certificates, tokens and host names change at once, the rest after a restart.

This page is made from the source (`crates/logspool-server/src/config/` and `protocols/`).
";

#[test]
fn the_page_matches_the_source() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/service-config.md");
    let page = page();
    if std::env::var_os("LOGSPOOL_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }

    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == found, "the page differs from the source: see the head of this file for how to write it again");
}

#[test]
fn the_example_of_the_page_can_be_used() {
    let example = HEAD.len();
    let page = page();
    let (_, rest) = page[example..].split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    Config::parse(example).unwrap().check().unwrap();
}

const EXAMPLE: &str = r#"
## An example

```toml
listen = ["tcp://127.0.0.1:9020", "udp://127.0.0.1:9021", "unix:///run/logspool.sock"]
http = "127.0.0.1:9080"
store = ["sqlite:/var/lib/logspool"]

[retention]
days = 30
bytes = 50_000_000_000

[limits]
waiting_bytes = 268_435_456
```
"#;

fn page() -> String {
    let schema = serde_json::to_value(schema_for!(Config)).unwrap();
    let mut page = HEAD.to_owned() + EXAMPLE;
    table(&mut page, "The top of the file", &schema, &schema);
    for (name, property) in schema["properties"].as_object().unwrap() {
        if let Some(inner) = resolved(&schema, property) {
            table(&mut page, &format!("`[{name}]`"), inner, &schema);
        }
    }
    page.push_str(
        "\n## Protocols\n\nThe first bytes of a connection or datagram tell its protocol; `?protocol=NAME` in an address \
         of `listen` fixes one.\n\n| name | senders | datagrams |\n|---|---|---|\n",
    );
    for protocol in known_protocols::ALL {
        let datagrams = if protocol.datagrams.is_some() { "yes" } else { "no" };
        writeln!(page, "| `{}` | {} | {datagrams} |", protocol.name, protocol.senders).unwrap();
    }
    page.push_str(
        "\n## Levels\n\nNames of levels are always understood. The other keys of a record tell the scale of a number; \
         `?levels=NAME` in an address of `listen` fixes it.\n\n| name | senders |\n|---|---|\n",
    );
    for scale in SCALES {
        writeln!(page, "| `{}` | {} |", scale.name, scale.senders).unwrap();
    }
    page.push_str("\n## Stores\n\nThe form of an address of `store`, by kind.\n\n| kind | address |\n|---|---|\n");
    for kind in stores::ALL {
        writeln!(page, "| `{}` | `{}` |", kind.name, kind.form).unwrap();
    }
    page
}

/// The schema of a section; `None` if the property is not a section.
fn resolved<'s>(root: &'s Value, property: &'s Value) -> Option<&'s Value> {
    let choices = property["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let reference = choices.iter().chain([property]).find_map(|choice| choice["$ref"].as_str())?;
    root.pointer(reference.strip_prefix('#')?)
}

fn table(page: &mut String, title: &str, part: &Value, root: &Value) {
    write!(page, "\n## {title}\n\n").unwrap();
    if title.starts_with('`') {
        writeln!(page, "{}\n", line(&part["description"])).unwrap();
    }
    page.push_str("| key | type | meaning |\n|---|---|---|\n");
    for (name, property) in part["properties"].as_object().unwrap() {
        if resolved(root, property).is_none() {
            writeln!(page, "| `{name}` | {} | {} |", kind(property), line(&property["description"])).unwrap();
        }
    }
}

/// A description on one line.
fn line(description: &Value) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn kind(property: &Value) -> &'static str {
    let types: Vec<_> = match &property["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    match types.first() {
        Some(&"array") => "list of text",
        Some(&"boolean") => "true or false",
        Some(&"integer") => "number",
        _ => "text",
    }
}
