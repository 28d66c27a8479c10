//! A receiver of HTTP requests that accepts everything.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The receiver, which runs as long as the program.
pub struct HttpReceiver {
    bodies: Arc<Mutex<Vec<u8>>>,
}

impl HttpReceiver {
    /// Starts it at `http://HOST:PORT`.
    pub fn start(address: &str) -> Self {
        let listener = TcpListener::bind(address.strip_prefix("http://").unwrap()).unwrap();
        let bodies = Arc::<Mutex<Vec<u8>>>::default();
        let kept = bodies.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { bodies }
    }

    /// The bodies of all requests, oldest first.
    pub fn bodies(&self) -> Vec<u8> {
        self.bodies.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<u8>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
            if let Some(number) = line.to_lowercase().strip_prefix("content-length: ") {
                length = number.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        kept.lock().unwrap().extend_from_slice(&body);
        // Elasticsearch's answer; the other receivers answer nothing.
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"errors\":false}";
        stream.get_mut().write_all(answer).ok()?;
    }
}
