//! A PostgreSQL server for tests, in a temporary folder with a unix socket. It is removed at the end of the test.
//!
//! A keeper, a small shell program, starts the server and stops it by its process id. It reads orders from the test.
//! When they end, however the test ends, it stops the server and removes the folder.

pub mod batches;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tokio_postgres::{Client, NoTls, Row};

/// Time limit for an answer of the server. Chosen: it needs a second; a loaded machine gets a minute.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Options of a server that uses little memory.
pub const SMALL: &str = "-c shared_buffers=32MB -c max_connections=50";

/// Options of a server with TLS, whose files are [`put`](Server::put) into its folder.
pub const ENCRYPTED: &str = "-c ssl=on -c ssl_cert_file=server.crt -c ssl_key_file=server.key";

/// The keeper. Its orders are `start`, `alive`, and `KILL` or `QUIT` to end the server with that signal. It answers
/// each with a line.
const KEEPER: &str = r#"
trap '' INT TERM HUP
pid=
while read -r order; do
    answer=yes
    case $order in
        start)
            # The options, which are several words, are not quoted.
            "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=on $3 </dev/null >>"$2/log" 2>&1 &
            pid=$! ;;
        alive)
            grep -q '^State:.[^ZX]' "/proc/$pid/status" || { wait "$pid"; answer=no; } ;;
        *)
            kill -"$order" "$pid"; wait "$pid"; pid= ;;
    esac
    echo $answer
done
[ -z "$pid" ] || { kill -QUIT "$pid"; wait "$pid"; }
rm -rf "$2"
"#;

/// A server. Dropping it stops the server.
pub struct Server {
    folder: PathBuf,
    port: u16,
    orders: Mutex<(Option<ChildStdin>, BufReader<ChildStdout>)>,
    keeper: Mutex<Child>,
}

/// A database of one test.
pub struct Database {
    /// The name of the protocol.
    pub name: String,
    /// Its address.
    pub url: String,
    /// The log of the server, for all databases.
    log: PathBuf,
}

/// A new database on the server that the tests of this program share. `None`: tests run without PostgreSQL.
pub fn database() -> Option<Database> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED.get_or_init(Server::start).as_ref().map(Server::database)
}

impl Server {
    /// A server for a single test.
    ///
    /// # Panics
    ///
    /// PostgreSQL is not installed, and `LOGSPOOL_WITHOUT_POSTGRES` is not set.
    pub fn start() -> Option<Self> {
        Self::start_with(SMALL)
    }

    /// As [`Self::start`], with options for the server program.
    pub fn start_with(options: &str) -> Option<Self> {
        let server = Self::prepare(options)?;
        server.order("start");
        server.wait();
        Some(server)
    }

    /// As [`Self::start_with`], but does not start the server.
    pub fn prepare(options: &str) -> Option<Self> {
        if env::var_os("LOGSPOOL_WITHOUT_POSTGRES").is_some_and(|value| value == "1") {
            eprintln!("skipped: LOGSPOOL_WITHOUT_POSTGRES is set");
            return None;
        }
        let programs = programs().unwrap_or_else(|| {
            panic!(
                "no programs of PostgreSQL (initdb, postgres) in LOGSPOOL_POSTGRES_BIN, on the PATH or under \
                 /usr/lib/postgresql: install Debian's package postgresql, or set LOGSPOOL_WITHOUT_POSTGRES=1"
            )
        });
        // The path of a socket has a small maximum length, which a long TMPDIR would exceed.
        let folder = tempfile::Builder::new().prefix("logspool-").tempdir_in("/tmp").unwrap().keep();
        let owner = owner();
        if let Some((user, group)) = owner {
            chown(&folder, Some(user), Some(group)).unwrap();
        }
        let as_owner = |program: &Path| {
            let mut command = Command::new(program);
            if let Some((user, group)) = owner {
                command.uid(user).gid(group);
            }
            command.current_dir(&folder).env("HOME", &folder);
            command
        };
        let made = as_owner(&programs.join("initdb"))
            .args(["--username=logspool", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(folder.join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let mut keeper = as_owner(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .args([&programs, &folder])
            .arg(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = (keeper.stdin.take(), BufReader::new(keeper.stdout.take().unwrap()));
        Some(Self { folder, port: 5432, orders: Mutex::new(orders), keeper: Mutex::new(keeper) })
    }

    /// Prepares a server that also listens on a port of this machine. Does not start it.
    pub fn prepare_with_port(options: &str) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self::prepare(&format!("{SMALL} -c listen_addresses=127.0.0.1 -c port={port} {options}"))?;
        server.port = port;
        Some(server)
    }

    /// Puts a file that only the server may read into its folder; replaces an existing one.
    pub fn put(&self, name: &str, content: &str) {
        let path = self.folder.join("data").join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((user, group)) = owner() {
            chown(&path, Some(user), Some(group)).unwrap();
        }
    }

    /// The port of the server, if it listens on one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server; it may take a while until it answers.
    pub fn start_again(&self) {
        self.order("start");
    }

    /// Starts the server after a crash. Retries, because old processes may still run for a moment, and the server
    /// refuses to start meanwhile.
    pub fn start_again_at_last(&self) {
        let until = Instant::now() + DEADLINE;
        loop {
            self.order("start");
            while self.order("alive") == "yes" {
                if connect(&self.url("postgres")).is_ok() {
                    return;
                }
                assert!(Instant::now() < until, "PostgreSQL does not start again; its log: {}", self.log());
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Kills the server as a fault would: `KILL` for the one process that was started, `QUIT` for all at once.
    pub fn crash(&self, signal: &str) {
        self.order(signal);
    }

    /// Creates a database.
    pub fn database(&self) -> Database {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.named("postgres").execute(&format!("CREATE DATABASE {name}"));
        self.named(&name)
    }

    /// An existing database.
    pub fn named(&self, name: &str) -> Database {
        Database { name: name.to_owned(), url: self.url(name), log: self.folder.join("log") }
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://logspool@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// The path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Waits until the server answers.
    pub fn wait(&self) {
        let until = Instant::now() + DEADLINE;
        while connect(&self.url("postgres")).is_err() {
            assert!(Instant::now() < until, "PostgreSQL does not answer; its log: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn order(&self, order: &str) -> String {
        let mut orders = self.orders.lock().unwrap();
        writeln!(orders.0.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        orders.1.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the orders, which stops the server.
        self.orders.lock().unwrap().0 = None;
        self.keeper.lock().unwrap().wait().unwrap();
    }
}

impl Database {
    /// Runs statements.
    pub fn execute(&self, sql: &str) {
        let (runtime, client) = connect(&self.url).unwrap();
        runtime.block_on(client.batch_execute(sql)).unwrap();
    }

    /// The rows of a query.
    pub fn query(&self, sql: &str) -> Vec<Row> {
        let (runtime, client) = connect(&self.url).unwrap();
        runtime.block_on(client.query(sql, &[])).unwrap()
    }

    /// Makes the server log every statement of new connections.
    pub fn note_statements(&self) {
        self.execute(&format!("ALTER DATABASE {} SET log_statement = 'all'", self.name));
    }

    /// Number of logged statements, over all databases.
    pub fn noted_statements(&self) -> usize {
        let log = fs::read_to_string(&self.log).unwrap();
        log.lines().filter(|line| line.contains("LOG:  statement: ") || line.contains("LOG:  execute ")).count()
    }

    /// The result of a query that returns a single number.
    pub fn number(&self, sql: &str) -> i64 {
        self.query(sql)[0].get(0)
    }
}

/// A connection in addition to the store's.
pub fn connect(url: &str) -> Result<(tokio::runtime::Runtime, Client), tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
    runtime.spawn(connection);
    Ok((runtime, client))
}

/// The folder of the PostgreSQL programs.
fn programs() -> Option<PathBuf> {
    let has_them = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    if let Some(named) = env::var_os("LOGSPOOL_POSTGRES_BIN") {
        return Some(PathBuf::from(named)).filter(has_them);
    }
    if let Some(found) = env::var_os("PATH").and_then(|path| env::split_paths(&path).find(has_them)) {
        return Some(found);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let version = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
    let mut folders: Vec<_> = versions.map(|entry| (version(&entry), entry.path().join("bin"))).collect();
    folders.sort();
    folders.into_iter().rev().map(|(_, folder)| folder).find(has_them)
}

/// The user that runs the server if the test runs as root, which PostgreSQL refuses. The user `postgres` if it exists,
/// else `nobody`.
fn owner() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let entry = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry[0] == name)?;
        Some((entry.get(2)?.parse().ok()?, entry.get(3)?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).unwrap_or((65534, 65534)))
}
