//! PATH END LINES: logs through the macros, the crate `log` and `tracing`, and ends in one way.

use logspool::front::{Level, log_front, tracing_layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Prints what is evaluated: the arguments of a call that the features left out are not.
fn seen<T: std::fmt::Display>(value: T) -> T {
    println!("{value}");
    value
}

fn log_levels() {
    log::debug!("{}", seen("log debug"));
    log::info!("{}", seen("log info"));
    let _left_out = tracing::info_span!("left out", id = seen("info span")).entered();
    let _span = tracing::warn_span!("request", id = seen("warn span")).entered();
    tracing::info!("{}", seen("tracing info"));
    tracing::warn!("{}", seen("tracing warn"));
    logspool::debug!("{}", seen("own debug"));
}

fn end(way: &str) {
    match way {
        "exit" => std::process::exit(3),
        "panic" => panic!("the program panics"),
        "term" => drop(std::process::Command::new("kill").arg(std::process::id().to_string()).status()),
        "kill" => drop(std::process::Command::new("kill").args(["-9", &std::process::id().to_string()]).status()),
        // SAFETY: a crash is what the test asks for.
        "segv" => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        _ => {}
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, way, lines] = arguments.as_slice() else { return Err("usage: PATH END LINES".into()) };
    let lines: u32 = lines.parse()?;
    logspool::front::builder().file(path).format("%(levelname)s %(message)s").level(Level::Debug).start()?;
    log_front::start()?;
    tracing_subscriber::registry().with(tracing_layer::layer()).init();
    std::thread::spawn(move || (0..lines).for_each(|number| logspool::info!("line {}", number))).join().unwrap();
    if lines > 0 {
        log_levels();
    }
    end(way);
    Ok(())
}
