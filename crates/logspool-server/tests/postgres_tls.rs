//! The store over TLS: encrypted if the address asks for it, and only with the intended server.

use crate::postgres;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use logspool_server::stores::postgres::PostgresReader;
use logspool_server::stores::{Store, StoreError};
use postgres::batches::{all_records_query, chunk, config, records, write, writer};
use postgres::{DEADLINE, ENCRYPTED, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key for a name, as PEM.
fn issued(authority: &Authority, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "logspool");
    change(&mut params);
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A server with a certificate for `name`, and a folder with `ca.pem` and `other.pem`. The authority of `other.pem` has
/// issued no certificate.
fn encrypted(name: &str) -> Option<(Server, Authority, tempfile::TempDir)> {
    let server = Server::prepare_with_port(ENCRYPTED)?;
    let (authority, folder) = (authority("ours"), tempfile::tempdir().unwrap());
    let (certificate, key) = issued(&authority, name, |_| ());
    server.put("server.crt", &certificate);
    server.put("server.key", &key);
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    std::fs::write(folder.path().join("other.pem"), self::authority("other").pem()).unwrap();
    server.start_again();
    server.wait();
    Some((server, authority, folder))
}

fn url(server: &Server, database: &str, options: &str) -> String {
    format!("postgres://logspool@localhost:{}/{database}?hostaddr=127.0.0.1&{options}", server.port())
}

/// The result of writing one record to an address.
fn written(url: &str) -> Result<u64, String> {
    match writer(url).write(&[chunk("s", 1, 1, 1)]) {
        Ok(written) => Ok(written.stored + written.repeated),
        Err(StoreError::Retry(why)) => Err(why),
        Err(error) => panic!("{error:?} is not tried again"),
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "it never happened: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn records_are_sent_encrypted_to_the_intended_server_only() {
    let Some((server, _, folder)) = encrypted("localhost") else { return };
    let name = server.database().name;
    let (ours, other) = (file(folder.path(), "ca.pem"), file(folder.path(), "other.pem"));
    let to = |options: &str| url(&server, &name, options);
    for (encrypted, options) in [
        (false, "sslmode=disable".to_owned()),
        (true, String::new()),
        (true, "sslmode=prefer".to_owned()),
        (true, "sslmode=require".to_owned()),
        (true, format!("sslmode=require&sslrootcert={ours}")),
        (true, format!("sslmode=verify-ca&sslrootcert={ours}")),
        (true, format!("sslmode=verify-full&sslrootcert={ours}")),
    ] {
        let mut store = writer(&to(&options));
        write(&mut store, &[chunk("s", 1, 1, 3)]);
        let seen = "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                    WHERE a.application_name = 'logspool' AND a.datname = current_database()";
        let seen: Vec<bool> = server.named(&name).query(seen).iter().map(|row| row.get(0)).collect();

        assert_eq!(vec![encrypted], seen, "{options}");
        Box::new(store).close().unwrap();
        let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'logspool'";
        until("the connection is let go", || server.named(&name).number(left) == 0);
    }
    for options in [
        format!("sslmode=verify-full&sslrootcert={other}"),
        format!("sslmode=verify-ca&sslrootcert={other}"),
        format!("sslmode=require&sslrootcert={other}"),
    ] {
        let why = written(&to(&options)).unwrap_err();
        assert!(why.contains("UnknownIssuer") && why.contains(&format!("localhost:{}", server.port())), "{why}");
    }
    let reader = PostgresReader::new(&config(&to(&format!("sslmode=verify-full&sslrootcert={ours}"))));
    assert_eq!(3, records(&reader, &all_records_query()).len());
}

#[test]
fn a_certificate_for_another_name_is_refused_only_if_the_name_is_verified() {
    let Some((server, _, folder)) = encrypted("db.example") else { return };
    let (name, ours) = (server.database().name, file(folder.path(), "ca.pem"));
    let to = |mode: &str| url(&server, &name, &format!("sslmode={mode}&sslrootcert={ours}"));
    let why = written(&to("verify-full")).unwrap_err();

    assert!(why.contains("not valid for name") && why.contains("db.example"), "{why}");
    assert_eq!(Ok(1), written(&to("verify-ca")));
}

#[test]
fn a_server_without_encryption_gets_nothing_if_encryption_is_required() {
    let Some(server) = Server::prepare_with_port("") else { return };
    server.start_again();
    server.wait();
    let name = server.database().name;
    let why = written(&url(&server, &name, "sslmode=require")).unwrap_err();

    assert!(why.contains("does not support TLS"), "{why}");
    assert_eq!(Ok(1), written(&url(&server, &name, "sslmode=prefer")));
}

#[test]
fn corrected_certificates_are_used_at_the_next_attempt() {
    let Some((server, authority, folder)) = encrypted("localhost") else { return };
    let name = server.database().name;
    let expired = issued(&authority, "localhost", |params| params.not_after = date_time_ymd(2020, 1, 1));
    let renewed = issued(&authority, "localhost", |_| ());
    let present = |(certificate, key): &(String, String)| {
        server.put("server.crt", certificate);
        server.put("server.key", key);
        server.named("postgres").execute("SELECT pg_reload_conf()");
    };
    let late = file(folder.path(), "late.pem");
    let mut store = writer(&url(&server, &name, &format!("sslmode=verify-full&sslrootcert={late}")));
    let chunk = [chunk("s", 1, 1, 2)];
    let why = store.write(&chunk).unwrap_err().to_string();
    assert!(why.contains("late.pem") && why.contains("No such file"), "{why}");
    std::fs::write(&late, authority.pem()).unwrap();

    present(&expired);
    // The server reads its files shortly after the reload.
    let address = url(&server, &name, &format!("sslmode=verify-full&sslrootcert={late}"));
    until("the expired certificate is shown", || written(&address).is_err_and(|why| why.contains("expired")));
    assert!(store.write(&chunk).unwrap_err().to_string().contains("expired"));

    present(&renewed);
    write(&mut store, &chunk);
    assert_eq!(2, server.named(&name).number("SELECT count(*) FROM logspool.records"));
}
